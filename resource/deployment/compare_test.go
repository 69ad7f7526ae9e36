package deployment_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

func TestEvalContainerSpecChange(t *testing.T) {
	upToDate, update, recreate := deployment.ContainerUpToDate, deployment.ContainerNeedsUpdate, deployment.ContainerNeedsRecreate
	limited := func(s *api.ServiceSpec) { s.Container.Resources.Memory = quantity("1Gi") }
	for _, tc := range []struct {
		name     string
		from, to func(*api.ServiceSpec)
		want     deployment.ContainerSpecStatus
		paths    string
	}{
		{"the same", none, none, upToDate, ""},
		{"a default", none, func(s *api.ServiceSpec) { s.SetDefaults() }, upToDate, ""},
		{"an image in another way", func(s *api.ServiceSpec) { s.Container.Image = "nginx" },
			func(s *api.ServiceSpec) { s.Container.Image = "docker.io/library/nginx:latest" }, upToDate, ""},
		{"another tag of an image", func(s *api.ServiceSpec) { s.Container.Image = "nginx" },
			func(s *api.ServiceSpec) { s.Container.Image = "nginx:1.27" }, recreate, "container.image"},
		{"options of the default driver", func(s *api.ServiceSpec) { data(s); s.Volumes[0].Driver = &api.VolumeDriver{Name: "local"} },
			func(s *api.ServiceSpec) { data(s); s.Volumes[0].Driver = &api.VolumeDriver{} }, upToDate, ""},
		{"replicas", none, func(s *api.ServiceSpec) { s.Replicas = new(int32(7)) }, upToDate, ""},
		{"placement", none, func(s *api.ServiceSpec) { s.Placement.Machines = []string{"m1"} }, upToDate, ""},
		{"how it is updated", none, rollback, upToDate, ""},
		{"the hook", none, hook("migrate"), upToDate, ""},
		{"how it is pulled", none, func(s *api.ServiceSpec) { s.Container.PullPolicy = api.PullAlways }, upToDate, ""},
		{"a volume that is not mounted", none, func(s *api.ServiceSpec) { s.Volumes = []api.VolumeSpec{{Name: "data"}} }, upToDate, ""},
		{"a quantity in another unit", limited, func(s *api.ServiceSpec) { s.Container.Resources.Memory = quantity("1024Mi") }, upToDate, ""},
		{"the order of capabilities", func(s *api.ServiceSpec) { s.Container.CapAdd = []string{"A", "B"} },
			func(s *api.ServiceSpec) { s.Container.CapAdd = []string{"B", "A"} }, upToDate, ""},
		{"the order of ports", func(s *api.ServiceSpec) { port80(s); s.Ports = append(s.Ports, api.PortSpec{ContainerPort: 1}) },
			func(s *api.ServiceSpec) { s.Ports = append(s.Ports, api.PortSpec{ContainerPort: 1}); port80(s) }, upToDate, ""},
		{"a limit", none, limited, update, "container.resources.memory"},
		{"another limit", limited, func(s *api.ServiceSpec) { s.Container.Resources.Memory = quantity("2Gi") }, update, "container.resources.memory"},
		{"no limit any more", limited, none, recreate, "container.resources.memory"},
		{"CPUs", none, func(s *api.ServiceSpec) { s.Container.Resources.CPU = quantity("1500m") }, update, "container.resources.cpu"},
		{"the restart policy", none, func(s *api.ServiceSpec) { s.Container.RestartPolicy.Name = api.RestartNo }, update, "container.restartPolicy"},
		{"a limit and the image", none, func(s *api.ServiceSpec) { limited(s); s.Container.Image = "app:v2" }, recreate,
			"container.image container.resources.memory"},
		{"an empty variable", none, func(s *api.ServiceSpec) { s.Container.Env = map[string]string{"A": ""} }, recreate, "container.env.A"},
		{"a variable that becomes secret", func(s *api.ServiceSpec) { s.Container.Env = map[string]string{"A": "b"} },
			func(s *api.ServiceSpec) { s.Container.SecretEnv = map[string]api.Hidden{"A": "b"} }, upToDate, ""},
		{"the order of arguments", func(s *api.ServiceSpec) { s.Container.Command = []string{"a", "b"} },
			func(s *api.ServiceSpec) { s.Container.Command = []string{"b", "a"} }, recreate, "container.command"},
		{"an empty command", none, func(s *api.ServiceSpec) { s.Container.Command = []string{} }, recreate, "container.command"},
		{"an empty entrypoint", func(s *api.ServiceSpec) { s.Container.Entrypoint = []string{} }, none, recreate, "container.entrypoint"},
		{"a job", none, func(s *api.ServiceSpec) { s.Mode = api.ServiceModeJob }, recreate,
			"container.healthCheck.disable container.restartPolicy mode"},
		{"a global service", none, global, upToDate, ""},
		{"a port", none, port80, recreate, "ports[80:8080/tcp]"},
		{"a volume", none, data, recreate, "container.volumeMounts[/data]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			from, to := web("app:v1", 1, tc.from), web("app:v1", 1, tc.to)
			if have := deployment.EvalContainerSpecChange(from, to); have != tc.want {
				t.Errorf("it is %s, not %s", have, tc.want)
			}
			var paths []string
			for _, c := range deployment.ContainerSpecChanges(from, to) {
				paths = append(paths, c.Path)
			}
			if have := strings.Join(paths, " "); have != tc.paths {
				t.Errorf("these differ: %s, not %s", have, tc.paths)
			}
		})
	}
}

func none(*api.ServiceSpec) {}

// TestNoAttributeOfContainersIsForgotten changes each field of a container's specification, so that one that is added and not compared
// is found.
func TestNoAttributeOfContainersIsForgotten(t *testing.T) {
	ignored := map[string]bool{"PullPolicy": true}
	base := web("app:v1", 1, large, data, checked)
	base.Container.Resources.Devices = []api.Device{{Host: "/dev/null"}}
	fields(t, reflect.ValueOf(&base).Elem().FieldByName("Container"), "Container", func(path string, set func() func()) {
		before := base.Clone()
		undo := set()
		defer undo()
		if deployment.EvalContainerSpecChange(before, base) == deployment.ContainerUpToDate && !ignored[strings.TrimPrefix(path, "Container.")] {
			t.Errorf("a change of %s is not seen", path)
		}
	})
}

// fields calls f for each value in a struct with a function that changes it.
func fields(t *testing.T, v reflect.Value, path string, f func(path string, set func() func())) {
	t.Helper()
	change := func(to any) {
		f(path, func() func() {
			old := reflect.New(v.Type()).Elem()
			old.Set(v)
			v.Set(reflect.ValueOf(to).Convert(v.Type()))
			return func() { v.Set(old) }
		})
	}
	switch x := v.Interface().(type) {
	case metav1.Duration:
		change(metav1.Duration{Duration: x.Duration + time.Second})
		return
	case *metav1.Duration:
		change(&metav1.Duration{Duration: 17 * time.Second})
		return
	case *resource.Quantity:
		change(quantity("12345678"))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fields(t, v.Field(i), path+"."+v.Type().Field(i).Name, f)
		}
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		fields(t, v.Elem(), path, f)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.String {
			change([]string{"CMD", "other"})
			return
		}
		for i := range v.Len() {
			fields(t, v.Index(i), path, f)
		}
	case reflect.Map:
		other := reflect.MakeMap(v.Type())
		if v.Len() == 0 {
			other.SetMapIndex(reflect.ValueOf("new"), reflect.Zero(v.Type().Elem()))
		}
		change(other.Interface())
	case reflect.String:
		other := "other"
		if strings.HasSuffix(path, ".Volume") || strings.HasSuffix(path, ".Config") {
			// Another one that is there.
			return
		}
		change(other)
	case reflect.Bool:
		change(!v.Bool())
	case reflect.Int, reflect.Int32, reflect.Int64:
		change(v.Int() + 5)
	default:
		t.Errorf("%s is of kind %s, which the test does not know", path, v.Kind())
	}
}

func TestARecordOfAContainerIsAsUpToDateAsTheContainer(t *testing.T) {
	spec := api.ServiceSpec{
		Name: "web",
		Container: api.ContainerSpec{
			Image: "app:1", SecretEnv: map[string]api.Hidden{"TOKEN": "a", "EMPTY": ""},
			LogDriver:    &api.LogDriver{Name: "x", Options: map[string]string{"token": "a"}},
			ConfigMounts: []api.ConfigMount{{Config: "c", Path: "/c"}}, VolumeMounts: []api.VolumeMount{{Volume: "v", Path: "/v"}},
		},
		Volumes: []api.VolumeSpec{{Name: "v", Driver: &api.VolumeDriver{Name: "x", Options: map[string]string{"o": "a"}}}},
		Configs: []api.ConfigSpec{{Name: "c", Content: "a"}},
	}
	record := spec.Fingerprinted()
	if changes := deployment.ContainerSpecChanges(record, spec); len(changes) > 0 {
		t.Errorf("changes = %v", changes)
	}
	plain := spec.Clone()
	plain.Container.Env, plain.Container.SecretEnv = map[string]string{"TOKEN": "a"}, map[string]api.Hidden{"EMPTY": ""}
	if changes := deployment.ContainerSpecChanges(record, plain); len(changes) > 0 {
		t.Errorf("a variable with the same value that is not secret any more: %v", changes)
	}
	for path, change := range map[string]func(*api.ServiceSpec){
		"container.env.TOKEN":                        func(s *api.ServiceSpec) { s.Container.SecretEnv["TOKEN"] = "b" },
		"container.env.EMPTY":                        func(s *api.ServiceSpec) { delete(s.Container.SecretEnv, "EMPTY") },
		"container.logDriver.options.token":          func(s *api.ServiceSpec) { s.Container.LogDriver.Options["token"] = "b" },
		"container.volumeMounts[/v].driverOptions.o": func(s *api.ServiceSpec) { s.Volumes[0].Driver.Options["o"] = "b" },
		"container.configMounts[/c].content":         func(s *api.ServiceSpec) { s.Configs[0].Content = "b" },
	} {
		other := spec.Clone()
		change(&other)
		changes := deployment.ContainerSpecChanges(record, other)
		if len(changes) != 1 || changes[0].Path != path || strings.Contains(changes[0].String(), "fingerprint") {
			t.Errorf("changes of %s = %v", path, changes)
		}
	}
}
