package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

func valid() api.ServiceSpec {
	return api.ServiceSpec{Name: "web", Container: api.ContainerSpec{Image: "app:v1"}}
}

func host(ip string, published uint16) api.PortSpec {
	return api.PortSpec{Mode: api.PortModeHost, HostIP: ip, PublishedPort: published, ContainerPort: 80}
}

func TestValidateFindsEachFault(t *testing.T) {
	for path, change := range map[string]func(*api.ServiceSpec){
		"name":                           func(s *api.ServiceSpec) { s.Name = "Web_1" },
		"mode":                           func(s *api.ServiceSpec) { s.Mode = "some" },
		"replicas: Invalid":              func(s *api.ServiceSpec) { s.Replicas = new(int32(-1)) },
		"replicas: Invalid value: 10001": func(s *api.ServiceSpec) { s.Replicas = new(int32(api.MaxReplicas + 1)) },
		"replicas: Forbidden":            func(s *api.ServiceSpec) { s.Mode, s.Replicas = api.ServiceModeGlobal, new(int32(1)) },
		"container.image: Required":      func(s *api.ServiceSpec) { s.Container.Image = "" },
		"container.image: Invalid":       func(s *api.ServiceSpec) { s.Container.Image = "App:v1" },
		"container.pullPolicy":           func(s *api.ServiceSpec) { s.Container.PullPolicy = "sometimes" },
		"container.env":                  func(s *api.ServiceSpec) { s.Container.Env = map[string]string{"1=": ""} },
		"container.secretEnv: Duplicate": func(s *api.ServiceSpec) {
			s.Container.Env, s.Container.SecretEnv = map[string]string{"A": ""}, map[string]api.Hidden{"A": ""}
		},
		"container.healthCheck.test": func(s *api.ServiceSpec) { s.Container.HealthCheck = &api.HealthCheck{Test: []string{"curl"}} },
		"container.healthCheck.interval": func(s *api.ServiceSpec) {
			s.Container.HealthCheck = &api.HealthCheck{Interval: metav1.Duration{Duration: 3}}
		},
		"container.healthCheck.disable": func(s *api.ServiceSpec) { s.Container.HealthCheck = &api.HealthCheck{Disable: true, Retries: 1} },
		"container.resources.cpu":       func(s *api.ServiceSpec) { s.Container.Resources.CPU = new(resource.MustParse("0")) },
		"container.resources.cpu: Invalid value: \"10e9\": is more than engines": func(s *api.ServiceSpec) { s.Container.Resources.CPU = new(resource.MustParse("10e9")) },
		"container.resources.memory: Invalid value: \"1e2147483647\"":            func(s *api.ServiceSpec) { s.Container.Resources.Memory = new(resource.MustParse("1e2147483647")) },
		"container.resources.memoryReservation: Invalid": func(s *api.ServiceSpec) {
			s.Container.Resources.Memory, s.Container.Resources.MemoryReservation = new(resource.MustParse("1Mi")), new(resource.MustParse("1e2147483647"))
		},
		"container.resources.shmSize": func(s *api.ServiceSpec) { s.Container.Resources.ShmSize = new(resource.MustParse("1e19")) },
		"volumes[0].size": func(s *api.ServiceSpec) {
			s.Volumes = []api.VolumeSpec{{Name: "aa", Type: api.VolumeTypeTmpfs, Size: new(resource.MustParse("1e2147483647"))}}
		},
		"container.resources.memoryReser": func(s *api.ServiceSpec) {
			s.Container.Resources.Memory, s.Container.Resources.MemoryReservation = new(resource.MustParse("1Mi")), new(resource.MustParse("2Mi"))
		},
		"container.resources.devices[0]": func(s *api.ServiceSpec) { s.Container.Resources.Devices = []api.Device{{Host: "null"}} },
		"container.resources.ulimits[a]": func(s *api.ServiceSpec) {
			s.Container.Resources.Ulimits = map[string]api.Ulimit{"a": {Soft: 2, Hard: 1}}
		},
		"container.resources.gpus.count: Invalid": func(s *api.ServiceSpec) { s.Container.Resources.GPUs = &api.GPUs{Count: -2} },
		"container.resources.gpus.count: Forbidden": func(s *api.ServiceSpec) {
			s.Container.Resources.GPUs = &api.GPUs{Count: 1, IDs: []string{"0"}}
		},
		"container.pidMode": func(s *api.ServiceSpec) { s.Container.PidMode = "container:other" },
		"container.volumeMounts[0].noCopy": func(s *api.ServiceSpec) {
			s.Volumes = []api.VolumeSpec{{Name: "aa", Type: api.VolumeTypeTmpfs}}
			s.Container.VolumeMounts = []api.VolumeMount{{Volume: "aa", Path: "/a", NoCopy: true}}
		},
		"volumes[0].propagation: Forbidden": func(s *api.ServiceSpec) {
			s.Volumes = []api.VolumeSpec{{Name: "aa", Propagation: api.PropagationShared}}
		},
		"volumes[0].propagation: Unsupported": func(s *api.ServiceSpec) {
			s.Volumes = []api.VolumeSpec{{Name: "aa", Type: api.VolumeTypeBind, HostPath: "/srv", Propagation: "far"}}
		},
		"preDeploy.volumes": func(s *api.ServiceSpec) {
			s.Mode, s.PreDeploy = api.ServiceModeGlobal, &api.PreDeployHook{Command: []string{"a"}, Volumes: true}
		},
		"container.logDriver.name":         func(s *api.ServiceSpec) { s.Container.LogDriver = &api.LogDriver{} },
		"container.stopGracePeriod":        func(s *api.ServiceSpec) { s.Container.StopGracePeriod = &metav1.Duration{Duration: -1} },
		"container.restartPolicy.name":     func(s *api.ServiceSpec) { s.Container.RestartPolicy.Name = "always" },
		"container.restartPolicy.maxRet":   func(s *api.ServiceSpec) { s.Container.RestartPolicy.MaxRetries = 1 },
		"container.volumeMounts[0].volume": func(s *api.ServiceSpec) { s.Container.VolumeMounts = []api.VolumeMount{{Volume: "a", Path: "/a"}} },
		"container.volumeMounts[0].path": func(s *api.ServiceSpec) {
			s.Volumes = []api.VolumeSpec{{Name: "aa"}}
			s.Container.VolumeMounts = []api.VolumeMount{{Volume: "aa", Path: "a"}}
		},
		"container.volumeMounts[0].subPath": func(s *api.ServiceSpec) {
			s.Volumes = []api.VolumeSpec{{Name: "aa"}}
			s.Container.VolumeMounts = []api.VolumeMount{{Volume: "aa", Path: "/a", SubPath: "b/../../c"}}
		},
		"container.volumeMounts[0].subPath: Invalid": func(s *api.ServiceSpec) {
			s.Volumes = []api.VolumeSpec{{Name: "aa", Type: api.VolumeTypeBind, HostPath: "/srv"}}
			s.Container.VolumeMounts = []api.VolumeMount{{Volume: "aa", Path: "/a", SubPath: "/etc"}}
		},
		"container.volumeMounts[0].subPath: Forbidden": func(s *api.ServiceSpec) {
			s.Volumes = []api.VolumeSpec{{Name: "aa", Type: api.VolumeTypeTmpfs}}
			s.Container.VolumeMounts = []api.VolumeMount{{Volume: "aa", Path: "/a", SubPath: "b"}}
		},
		"container.configMounts[0].config": func(s *api.ServiceSpec) { s.Container.ConfigMounts = []api.ConfigMount{{Config: "a", Path: "/a"}} },
		"container.volumeMounts[1].path": func(s *api.ServiceSpec) {
			s.Volumes = []api.VolumeSpec{{Name: "aa"}}
			s.Container.VolumeMounts = []api.VolumeMount{{Volume: "aa", Path: "/a"}, {Volume: "aa", Path: "/a/"}}
		},
		"volumes[0].name":     func(s *api.ServiceSpec) { s.Volumes = []api.VolumeSpec{{Name: "a b"}} },
		"volumes[1].name":     func(s *api.ServiceSpec) { s.Volumes = []api.VolumeSpec{{Name: "aa"}, {Name: "aa"}} },
		"volumes[0].hostPath": func(s *api.ServiceSpec) { s.Volumes = []api.VolumeSpec{{Name: "aa", Type: api.VolumeTypeBind}} },
		"volumes[0].driver": func(s *api.ServiceSpec) {
			s.Volumes = []api.VolumeSpec{{Name: "aa", Type: api.VolumeTypeTmpfs, Driver: &api.VolumeDriver{Name: "a"}}}
		},
		"volumes[0].external": func(s *api.ServiceSpec) {
			s.Volumes = []api.VolumeSpec{{Name: "aa", External: true, Labels: map[string]string{"a": "b"}}}
		},
		"configs[0].name":                                func(s *api.ServiceSpec) { s.Configs = []api.ConfigSpec{{}} },
		"ports[0].containerPort":                         func(s *api.ServiceSpec) { s.Ports = []api.PortSpec{{}} },
		"ports[0].protocol":                              func(s *api.ServiceSpec) { s.Ports = []api.PortSpec{{ContainerPort: 1, Protocol: api.ProtocolUDP}} },
		"ports[0].hostIP":                                func(s *api.ServiceSpec) { s.Ports = []api.PortSpec{host("a", 0)} },
		"ports[0].hostIP: Invalid":                       func(s *api.ServiceSpec) { s.Ports = []api.PortSpec{host("10.0.0.0/33", 80)} },
		"ports[0].hostname":                              func(s *api.ServiceSpec) { s.Ports = []api.PortSpec{{ContainerPort: 1, Hostname: "A b"}} },
		"ports[0].hostname: Invalid value: \"10.0.0.1\"": func(s *api.ServiceSpec) { s.Ports = []api.PortSpec{{ContainerPort: 1, Hostname: "10.0.0.1"}} },
		"container.env: Invalid value: \"\"":             func(s *api.ServiceSpec) { s.Container.Env = map[string]string{"": "a"} },
		"container.secretEnv: Invalid":                   func(s *api.ServiceSpec) { s.Container.SecretEnv = map[string]api.Hidden{"a\x00": "a"} },
		"ports[0].publishedPort": func(s *api.ServiceSpec) {
			s.Ports = []api.PortSpec{{ContainerPort: 1, Protocol: api.ProtocolHTTP, PublishedPort: 443}}
		},
		"ports[0].path: Invalid": func(s *api.ServiceSpec) { s.Ports = []api.PortSpec{{ContainerPort: 1, Path: "/api/"}} },
		"ports[0].path: Forbidden": func(s *api.ServiceSpec) {
			s.Ports = []api.PortSpec{{Mode: api.PortModeHost, ContainerPort: 1, Path: "/api"}}
		},
		"ports[1]: Invalid value: \"/api:2/https\": conflicts with /api:1/https": func(s *api.ServiceSpec) {
			s.Ports = []api.PortSpec{{ContainerPort: 1, Path: "/api"}, {ContainerPort: 2, Path: "/api"}}
		},
		"ports[1]: Invalid":     func(s *api.ServiceSpec) { s.Ports = []api.PortSpec{host("", 80), host("10.0.0.1", 80)} },
		"placement.machines[1]": func(s *api.ServiceSpec) { s.Placement.Machines = []string{"a", "a"} },
		"preDeploy.command":     func(s *api.ServiceSpec) { s.PreDeploy = &api.PreDeployHook{} },
		"preDeploy.timeout": func(s *api.ServiceSpec) {
			s.PreDeploy = &api.PreDeployHook{Command: []string{"a"}, Timeout: &metav1.Duration{}}
		},
		"update.parallelism":                              func(s *api.ServiceSpec) { s.Update.Parallelism = -1 },
		"update.order: Unsupp":                            func(s *api.ServiceSpec) { s.Update.Order = "none-first" },
		"update.order: Forbidden":                         func(s *api.ServiceSpec) { s.Update.Order, s.Ports = api.OrderStartFirst, []api.PortSpec{host("", 80)} },
		"update.maxFailurePercent":                        func(s *api.ServiceSpec) { s.Update.MaxFailurePercent = 101 },
		"update.failureAction":                            func(s *api.ServiceSpec) { s.Update.FailureAction = "panic" },
		"update.delay: Invalid":                           func(s *api.ServiceSpec) { s.Update.Delay.Duration = api.MaxWait + 1 },
		"update.monitor: Invalid":                         func(s *api.ServiceSpec) { s.Update.Monitor = &metav1.Duration{Duration: api.MaxWait + 1} },
		"update.healthTimeout: Invalid value: \"24h":      func(s *api.ServiceSpec) { s.Update.HealthTimeout = &metav1.Duration{Duration: api.MaxWait + 1} },
		"container.stopGracePeriod: Invalid value: \"24h": func(s *api.ServiceSpec) { s.Container.StopGracePeriod = &metav1.Duration{Duration: api.MaxWait + 1} },
		"preDeploy.timeout: Invalid value: \"24h": func(s *api.ServiceSpec) {
			s.PreDeploy = &api.PreDeployHook{Command: []string{"a"}, Timeout: &metav1.Duration{Duration: api.MaxWait + 1}}
		},
		"ports: Too many":                  func(s *api.ServiceSpec) { s.Ports = make([]api.PortSpec, api.MaxItems+1) },
		"volumes: Too many":                func(s *api.ServiceSpec) { s.Volumes = make([]api.VolumeSpec, api.MaxItems+1) },
		"configs: Too many":                func(s *api.ServiceSpec) { s.Configs = make([]api.ConfigSpec, api.MaxItems+1) },
		"container.volumeMounts: Too many": func(s *api.ServiceSpec) { s.Container.VolumeMounts = make([]api.VolumeMount, api.MaxItems+1) },
		"container.configMounts: Too many": func(s *api.ServiceSpec) { s.Container.ConfigMounts = make([]api.ConfigMount, api.MaxItems+1) },
		"placement.machines: Too many":     func(s *api.ServiceSpec) { s.Placement.Machines = make([]string, api.MaxItems+1) },
		"update.healthTimeout":             func(s *api.ServiceSpec) { s.Update.HealthTimeout = &metav1.Duration{} },
	} {
		spec := valid()
		if err := spec.Validate(); err != nil {
			t.Fatal(err)
		}
		change(&spec)
		if err := spec.Validate(); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

func TestValidateTakesAllThatEnginesCanCount(t *testing.T) {
	spec := valid()
	spec.Replicas = new(int32(api.MaxReplicas))
	spec.Update.Delay.Duration = api.MaxWait
	for i := range api.MaxItems {
		spec.Ports = append(spec.Ports, host("", uint16(1000+i)))
	}
	for _, most := range []string{"1", "1m", "8Ei", "9223372036854775807"} {
		spec.Container.Resources.Memory = new(resource.MustParse(most))
		if err := spec.Validate(); err != nil {
			t.Errorf("%s: %v", most, err)
		}
	}
}

func TestValidateFindsAllFaultsAtOnce(t *testing.T) {
	spec := api.ServiceSpec{Name: "A", Mode: "b", Ports: []api.PortSpec{{}}, Update: api.UpdateConfig{Parallelism: -1}}
	err := spec.Validate()
	for _, path := range []string{"name", "mode", "container.image", "ports[0].containerPort", "update.parallelism"} {
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s is not in %v", path, err)
		}
	}
}

func TestVariablesHaveTheNamesThatEnginesTake(t *testing.T) {
	for _, name := range []string{"2FA", "Logging:LogLevel:Default", "a.b-c", "with space", "ключ", "a/b", "{a}"} {
		spec := valid()
		spec.Container.Env = map[string]string{name: "a"}
		if err := spec.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPortsConflict(t *testing.T) {
	for _, tc := range []struct {
		a, b api.PortSpec
		want bool
	}{
		{host("", 80), host("", 80), true},
		{host("", 80), host("", 81), false},
		{host("0.0.0.0", 80), host("10.0.0.1", 80), true},
		{host("::", 80), host("10.0.0.1", 80), true},
		{host("::", 80), host("0.0.0.0", 80), false},
		{host("::", 80), host("::0", 80), true},
		{host("::", 80), host("", 80), true},
		{host("0.0.0.0", 80), host("fe80::1", 80), true},
		{host("10.0.0.1", 80), host("10.0.0.1", 80), true},
		{host("10.0.0.1", 80), host("10.0.0.2", 80), false},
		{host("10.0.0.1", 80), host("10.0.0.0/8", 80), true},
		{host("11.0.0.1", 80), host("10.0.0.0/8", 80), false},
		{host("10.1.0.0/16", 80), host("10.0.0.0/8", 80), true},
		{host("10.0.0.0/8", 80), host("", 80), true},
		{host("10.0.0.1", 80), host("::ffff:10.0.0.1", 80), true},
		{host("", 0), host("", 0), false},
		{host("", 80), api.PortSpec{PublishedPort: 80, ContainerPort: 80}, false},
		{host("", 80), api.PortSpec{Mode: api.PortModeHost, PublishedPort: 80, ContainerPort: 80, Protocol: api.ProtocolUDP}, false},
	} {
		if tc.a.ConflictsWith(tc.b) != tc.want || tc.b.ConflictsWith(tc.a) != tc.want {
			t.Errorf("%s and %s: want %v", tc.a, tc.b, tc.want)
		}
	}
}

func TestHiddenTextsAreNotPrinted(t *testing.T) {
	spec := valid()
	spec.Container.SecretEnv = map[string]api.Hidden{"PASSWORD": "hunter2"}
	spec.Configs = []api.ConfigSpec{{Name: "a", Content: "hunter2"}}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		if text := fmt.Sprintf(verb+verb, spec, api.Hidden("hunter2")); strings.Contains(text, "hunter2") || strings.Contains(text, "68756e74657232") {
			t.Errorf("%s prints it", verb)
		}
	}
	text, err := json.Marshal(spec)
	var back api.ServiceSpec
	if err != nil || json.Unmarshal(text, &back) != nil || !back.Equal(spec) {
		t.Errorf("the record is not the same: %v", err)
	}
}

func TestClonesShareNothingAndAreEqual(t *testing.T) {
	spec := valid()
	spec.Container.Env = map[string]string{"A": "b"}
	spec.Container.Resources.Memory = new(resource.MustParse("1Gi"))
	spec.Ports = []api.PortSpec{host("", 80)}
	clone := spec.Clone()
	if !clone.Equal(spec) {
		t.Error("a clone is not equal")
	}
	clone.Container.Resources.Memory = new(resource.MustParse("1024Mi"))
	clone.Volumes = []api.VolumeSpec{}
	if !clone.Equal(spec) {
		t.Error("another form of the same is not equal")
	}
	clone.Container.Env["A"] = "c"
	clone.Ports[0].PublishedPort = 81
	if spec.Container.Env["A"] != "b" || spec.Ports[0].PublishedPort != 80 || clone.Equal(spec) {
		t.Error("a clone shares something")
	}
}

func TestDefaultsAreSetOnce(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		spec := valid()
		spec.Mode = rapid.SampledFrom([]api.ServiceMode{"", api.ServiceModeGlobal}).Draw(r, "mode")
		spec.Ports = []api.PortSpec{{ContainerPort: 1, Mode: rapid.SampledFrom([]api.PortMode{"", api.PortModeHost}).Draw(r, "port")}}
		spec.Volumes = []api.VolumeSpec{{Name: "aa"}}
		spec.Container.Resources.Devices = []api.Device{{Host: "/dev/null"}}
		spec.SetDefaults()
		once := spec.Clone()
		spec.SetDefaults()
		if diff := cmp.Diff(once, spec); diff != "" {
			r.Fatal(diff)
		}
		if err := spec.Validate(); err != nil {
			r.Fatal(err)
		}
	})
}

func TestHookSpec(t *testing.T) {
	spec := valid()
	spec.Ports = []api.PortSpec{host("", 80)}
	spec.Volumes = []api.VolumeSpec{{Name: "data"}}
	spec.Container.VolumeMounts = []api.VolumeMount{{Volume: "data", Path: "/data"}}
	spec.Container.Env = map[string]string{"A": "1"}
	spec.Container.Entrypoint = []string{"app"}
	spec.PreDeploy = &api.PreDeployHook{Command: []string{"migrate"}, Env: map[string]string{"B": "2"}, User: "root", Timeout: &metav1.Duration{Duration: time.Second}}
	hook := spec.HookSpec()
	want := api.ContainerSpec{
		Image: "app:v1", Entrypoint: []string{"app"}, Command: []string{"migrate"}, Env: map[string]string{"A": "1", "B": "2"}, User: "root",
		HealthCheck: &api.HealthCheck{Disable: true}, RestartPolicy: api.RestartPolicy{Name: api.RestartNo},
	}
	if diff := cmp.Diff(want, hook.Container); diff != "" || len(hook.Ports)+len(hook.Volumes) > 0 || len(spec.Container.Env) != 1 {
		t.Errorf("ports %v, volumes %v (-want +got):\n%s", hook.Ports, hook.Volumes, diff)
	}
	spec.PreDeploy.Volumes = true
	want.VolumeMounts = spec.Container.VolumeMounts
	hook = spec.HookSpec()
	if diff := cmp.Diff(want, hook.Container); diff != "" || len(hook.Ports) > 0 || cmp.Diff(spec.Volumes, hook.Volumes) != "" {
		t.Errorf("with its volumes: ports %v, volumes %v (-want +got):\n%s", hook.Ports, hook.Volumes, diff)
	}
}
