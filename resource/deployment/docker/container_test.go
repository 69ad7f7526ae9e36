package docker_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/api/types/container"
	moby "github.com/moby/moby/client"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// everything is a specification with all that can be tested on any machine.
func everything() api.ServiceSpec {
	s := spec(image1, 1)
	c := &s.Container
	c.Env = map[string]string{"PLAIN": "seen"}
	c.SecretEnv = map[string]api.Hidden{"TOKEN": "s3cr3t-token"}
	c.User, c.WorkingDir = "1000:1000", "/tmp"
	c.Labels = map[string]string{"team": "a", "io.operatorkit.service": "not-mine"}
	c.HealthCheck = &api.HealthCheck{Test: []string{"CMD", "/app", "health"}, Interval: metav1.Duration{Duration: 100 * time.Millisecond}}
	c.Init, c.ReadOnly, c.PidMode = true, true, api.PidModeHost
	c.CapDrop, c.CapAdd = []string{"ALL"}, []string{"NET_BIND_SERVICE"}
	c.Sysctls = map[string]string{"net.ipv4.ip_unprivileged_port_start": "80"}
	c.LogDriver = &api.LogDriver{Name: "json-file", Options: map[string]string{"max-size": "1m"}}
	c.StopSignal, c.StopGracePeriod = "SIGTERM", &metav1.Duration{Duration: 1500 * time.Millisecond}
	c.Resources = api.Resources{
		CPU: ptr.To(resource.MustParse("500m")), Memory: ptr.To(resource.MustParse("64Mi")), MemoryReservation: ptr.To(resource.MustParse("32Mi")),
		ShmSize: ptr.To(resource.MustParse("8Mi")), PidsLimit: 50, Ulimits: map[string]api.Ulimit{"nofile": {Soft: 100, Hard: 200}},
		Devices: []api.Device{{Host: "/dev/null", Container: "/dev/nothing", Permissions: "r"}},
	}
	c.RestartPolicy = api.RestartPolicy{Name: api.RestartOnFailure, MaxRetries: 2}
	s.Volumes = []api.VolumeSpec{
		{Name: "data"}, {Name: "scratch", Type: api.VolumeTypeTmpfs, Size: ptr.To(resource.MustParse("1Mi"))},
		{Name: "host", Type: api.VolumeTypeBind, HostPath: "/proc/self/ns"},
		{Name: "below", Type: api.VolumeTypeBind, HostPath: "/proc/self/task", Propagation: api.PropagationPrivate, CreateHostPath: true},
	}
	c.VolumeMounts = []api.VolumeMount{
		{Volume: "data", Path: "/data", NoCopy: true}, {Volume: "scratch", Path: "/scratch"}, {Volume: "host", Path: "/host", ReadOnly: true},
		{Volume: "below", Path: "/below", ReadOnly: true},
	}
	s.Configs = []api.ConfigSpec{{Name: "main", Content: "answer: 42\n"}, {Name: "empty"}}
	c.ConfigMounts = []api.ConfigMount{
		{Config: "main", Path: "/etc/app/main.yaml", UID: 1000, GID: 1000, Mode: 0o400}, {Config: "empty", Path: "/etc/app/empty"},
	}
	s.SetDefaults()
	return s
}

func TestAContainerIsWhatItsSpecificationSays(t *testing.T) {
	k := newKit(t)
	s := everything()
	k.must(k.cli.CreateVolume(k.ctx, "engine-1", s.Volumes[0]))
	id := k.create("web-1", s)
	k.must(k.cli.StartContainer(k.ctx, "engine-1", id))
	k.must(k.cli.WaitContainerReady(k.ctx, "engine-1", id, s.Update.Wait()))

	c := k.inspect("web-1")
	if changes := deployment.ContainerSpecChanges(c.Spec, s); len(changes) > 0 {
		t.Errorf("it differs from its specification: %v", changes)
	}
	if c.ID != id || c.ServiceName != "web" || c.ServiceID != "id-of-web" || c.Hook || !c.Ready() || c.Health != api.HealthHealthy || c.Created.IsZero() {
		t.Errorf("container = %+v", c)
	}
	for path, want := range map[string]string{
		"/env?name=PLAIN": "seen", "/env?name=TOKEN": "s3cr3t-token", "/file?path=/etc/app/main.yaml": "answer: 42\n", "/file?path=/etc/app/empty": "",
	} {
		if got := k.get(c, path); got != want {
			t.Errorf("%s = %q, want %q", path, got, want)
		}
	}
	inspected, err := k.engine(k.engines[0]).ContainerInspect(k.ctx, id, moby.ContainerInspectOptions{})
	k.must(err)
	host, config := inspected.Container.HostConfig, inspected.Container.Config
	for what, ok := range map[string]bool{
		"cpu": host.NanoCPUs == 5e8, "memory": host.Memory == 64<<20, "reservation": host.MemoryReservation == 32<<20, "shm": host.ShmSize == 8<<20,
		"pids": *host.PidsLimit == 50, "ulimits": len(host.Ulimits) == 1 && host.Ulimits[0].Hard == 200,
		"devices": len(host.Devices) == 1 && host.Devices[0].CgroupPermissions == "r", "read-only": host.ReadonlyRootfs, "init": *host.Init,
		"capabilities": len(host.CapAdd) == 1 && len(host.CapDrop) == 1, "sysctls": len(host.Sysctls) == 1, "log": host.LogConfig.Config["max-size"] == "1m",
		"user": config.User == "1000:1000", "dir": config.WorkingDir == "/tmp", "label": config.Labels["team"] == "a",
		"signal": config.StopSignal == "SIGTERM", "grace": *config.StopTimeout == 2, "mounts": len(inspected.Container.Mounts) == 6,
		"processes": host.PidMode.IsHost(), "no copy": host.Mounts[0].VolumeOptions.NoCopy, "propagation": slices.Equal(host.Binds, []string{"/proc/self/task:/below:ro,private"}),
		"restart": host.RestartPolicy.MaximumRetryCount == 2,
	} {
		if !ok {
			t.Errorf("%s is not as the specification says: %+v %+v", what, host, config)
		}
	}
}

func TestGPUsAreAskedForFromTheDriverThatHasThem(t *testing.T) {
	k := newKit(t)
	s := spec(image1, 1)
	s.Container.Resources.GPUs = &api.GPUs{Driver: "nvidia", Capabilities: []string{"utility"}, Options: map[string]string{"a": "b"}}
	// An engine looks for the driver when it starts the container.
	id := k.create("web-1", s)
	inspected, err := k.engine(k.engines[0]).ContainerInspect(k.ctx, id, moby.ContainerInspectOptions{})
	k.must(err)
	want := []container.DeviceRequest{{Driver: "nvidia", Count: -1, Capabilities: [][]string{{"gpu", "utility"}}, Options: map[string]string{"a": "b"}}}
	if diff := cmp.Diff(want, inspected.Container.HostConfig.DeviceRequests); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if changes := deployment.ContainerSpecChanges(k.inspect("web-1").Spec, s); len(changes) > 0 {
		t.Errorf("it differs from its specification: %v", changes)
	}
}

func TestSecretsAreNotInLabels(t *testing.T) {
	k := newKit(t)
	s := everything()
	s.Container.LogDriver.Options["tag"] = "log-option"
	s.Volumes[0].Driver = &api.VolumeDriver{Name: "local", Options: map[string]string{"o": "size=5m,password=driver-option", "type": "tmpfs", "device": "tmpfs"}}
	k.create("web-1", s)
	inspected, err := k.engine(k.engines[0]).ContainerInspect(k.ctx, "web-1", moby.ContainerInspectOptions{})
	k.must(err)
	for name, value := range inspected.Container.Config.Labels {
		for _, secret := range []string{"s3cr3t-token", "answer: 42", "log-option", "driver-option"} {
			if strings.Contains(value, secret) {
				t.Errorf("label %s has %q: %s", name, secret, value)
			}
		}
	}
	have := k.inspect("web-1").Spec
	if changes := deployment.ContainerSpecChanges(have, s); len(changes) > 0 {
		t.Errorf("it differs from its specification: %v", changes)
	}
	for path, change := range map[string]func(*api.ServiceSpec){
		"container.env.TOKEN":                                func(s *api.ServiceSpec) { s.Container.SecretEnv["TOKEN"] = "other" },
		"container.configMounts[/etc/app/main.yaml].content": func(s *api.ServiceSpec) { s.Configs[0].Content = "other" },
		"container.logDriver.options.tag":                    func(s *api.ServiceSpec) { s.Container.LogDriver.Options["tag"] = "other" },
		"container.volumeMounts[/data].driverOptions.o":      func(s *api.ServiceSpec) { s.Volumes[0].Driver.Options["o"] = "other" },
		"container.configMounts[/etc/app/empty].content":     func(s *api.ServiceSpec) { s.Configs[1].Content = "other" },
	} {
		other := s.Clone()
		change(&other)
		changes := deployment.ContainerSpecChanges(have, other)
		if len(changes) != 1 || changes[0].Path != path || changes[0].Old != "(hidden)" || changes[0].New != "(hidden)" {
			t.Errorf("changes of %s = %v", path, changes)
		}
	}
}

func TestAContainerIsMadeAnewFromWhatItsRecordHides(t *testing.T) {
	k := newKit(t)
	s := everything()
	k.create("web-1", s)
	record := k.inspect("web-1").Spec
	if !api.IsFingerprint(string(record.Configs[0].Content)) {
		t.Fatalf("the record has the config: %q", string(record.Configs[0].Content))
	}
	id := k.create("web-2", record)
	k.must(k.cli.StartContainer(k.ctx, "engine-1", id))
	k.must(k.cli.WaitContainerReady(k.ctx, "engine-1", id, s.Update.Wait()))
	c := k.inspect(id)
	if changes := deployment.ContainerSpecChanges(c.Spec, s); len(changes) > 0 {
		t.Errorf("it differs from its specification: %v", changes)
	}
	if got := k.get(c, "/env?name=TOKEN") + k.get(c, "/file?path=/etc/app/main.yaml"); got != "s3cr3t-tokenanswer: 42\n" {
		t.Errorf("its secrets are %q", got)
	}

	k.must(k.cli.RemoveContainer(k.ctx, "engine-1", "web-1"))
	k.must(k.cli.RemoveContainer(k.ctx, "engine-1", "web-2"))
	_, err := k.cli.CreateContainer(k.ctx, "engine-1", api.CreateContainerOptions{Name: "web-3", ServiceID: "x", Spec: record})
	if err == nil || !strings.Contains(err.Error(), "fingerprint alone") {
		t.Errorf("a container without its secrets: %v", err)
	}
}

func TestOperationsOnContainersAreIdempotent(t *testing.T) {
	k := newKit(t)
	s := everything()
	id := k.create("web-1", s)
	_, err := k.cli.CreateContainer(k.ctx, "engine-1", api.CreateContainerOptions{Name: "web-1", ServiceID: "x", Spec: s})
	if !errors.Is(err, api.ErrExists) {
		t.Errorf("create it again: %v", err)
	}
	for range 2 {
		k.must(k.cli.StartContainer(k.ctx, "engine-1", "web-1"))
	}
	_, err = k.engine(k.engines[0]).ContainerPause(k.ctx, id, moby.ContainerPauseOptions{})
	k.must(err)
	k.must(k.cli.StartContainer(k.ctx, "engine-1", id))
	if c := k.inspect(id); c.State != api.ContainerRunning {
		t.Errorf("it is %s after it was paused and started", c.State)
	}
	_, err = k.engine(k.engines[0]).ContainerPause(k.ctx, id, moby.ContainerPauseOptions{})
	k.must(err)
	for range 2 {
		k.must(k.cli.StopContainer(k.ctx, "engine-1", id, 30*time.Second))
	}
	if code, err := k.cli.WaitContainerExit(k.ctx, "engine-1", id); code != 0 || err != nil {
		t.Errorf("it was killed, and not asked to stop: exit code %d, %v", code, err)
	}
	s.Container.Resources.CPU, s.Container.Resources.Memory = ptr.To(resource.MustParse("250m")), ptr.To(resource.MustParse("128Mi"))
	s.Container.RestartPolicy = api.RestartPolicy{Name: api.RestartNo}
	for range 2 {
		k.must(k.cli.UpdateContainer(k.ctx, "engine-1", id, s))
	}
	if changes := deployment.ContainerSpecChanges(k.inspect(id).Spec, s); len(changes) > 0 {
		t.Errorf("after the update it differs by %v", changes)
	}
	k.must(k.cli.StartContainer(k.ctx, "engine-1", id))
	k.must(k.cli.RemoveContainer(k.ctx, "engine-1", id))
	for what, err := range map[string]error{
		"remove":  k.cli.RemoveContainer(k.ctx, "engine-1", id),
		"start":   k.cli.StartContainer(k.ctx, "engine-1", id),
		"stop":    k.cli.StopContainer(k.ctx, "engine-1", id, 0),
		"update":  k.cli.UpdateContainer(k.ctx, "engine-1", id, s),
		"machine": k.cli.StartContainer(k.ctx, "nowhere", id),
		"wait":    k.cli.WaitContainerReady(k.ctx, "engine-1", id, s.Update.Wait()),
	} {
		if !errors.Is(err, api.ErrNotFound) {
			t.Errorf("%s of what is not there: %v", what, err)
		}
	}
	volumes, err := k.engine(k.engines[0]).VolumeList(k.ctx, moby.VolumeListOptions{})
	k.must(err)
	if len(volumes.Items) != 1 || volumes.Items[0].Name != "data" {
		t.Errorf("volumes = %+v, want the named one and not that of configs", volumes.Items)
	}
}

func TestWaitingTellsWhatDoesNotWork(t *testing.T) {
	k := newKit(t)
	quick := api.WaitOptions{Monitor: 2 * time.Second, HealthTimeout: patience}
	for name, test := range map[string]struct {
		image  string
		check  *api.HealthCheck
		policy api.RestartPolicyName
		wait   api.WaitOptions
		fault  string
	}{
		"sick":      {image: imageSick, wait: quick, fault: `it is unhealthy, its check ended with 1 and says "not healthy: 503 Service Unavailable"`},
		"slow":      {image: imageSick, check: &api.HealthCheck{Retries: 1000}, wait: api.WaitOptions{HealthTimeout: time.Second}, fault: "it is not healthy after 1s"},
		"ended":     {image: imageExits, policy: api.RestartNo, wait: quick, fault: "it is exited (exit code 3)"},
		"restarted": {image: imageExits, check: &api.HealthCheck{Disable: true}, wait: api.WaitOptions{Monitor: time.Hour}, fault: "it "},
		"well":      {image: image1, wait: quick},
		"unchecked": {image: image1, check: &api.HealthCheck{Disable: true}, wait: api.WaitOptions{Monitor: 10 * time.Millisecond, HealthTimeout: time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			s := spec(test.image, 1)
			s.Container.HealthCheck, s.Container.RestartPolicy.Name = test.check, test.policy
			k.create(name, s)
			k.must(k.cli.StartContainer(k.ctx, "engine-1", name))
			err := k.cli.WaitContainerReady(k.ctx, "engine-1", name, test.wait)
			switch {
			case test.fault == "" && err != nil:
				t.Error(err)
			case test.fault != "" && (!errors.Is(err, api.ErrUnhealthy) || !strings.Contains(err.Error(), test.fault)):
				t.Errorf("err = %v, want %q", err, test.fault)
			}
		})
	}
}

func TestTheExitCodeOfAContainerIsWaitedFor(t *testing.T) {
	k := newKit(t)
	s := spec(image1, 1)
	s.Container.Command, s.Container.RestartPolicy.Name = []string{"exit", "7"}, api.RestartNo
	id := k.create("job", s)
	ended := make(chan error, 1)
	var code int
	go func() {
		var err error
		code, err = k.cli.WaitContainerExit(k.ctx, "engine-1", id)
		ended <- err
	}()
	k.must(k.cli.StartContainer(k.ctx, "engine-1", id))
	k.must(<-ended)
	if code != 7 {
		t.Errorf("exit code = %d, want 7", code)
	}
}
