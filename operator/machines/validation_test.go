package machines_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// serverWithCRDs returns a client of a server that has the definitions, and a namespace of its own.
func serverWithCRDs(t *testing.T) (c client.Client, namespace string) {
	t.Helper()
	kube := operatortest.Start(t)
	crds, err := operator.ReadCRDs(v1alpha1.CRDs)
	if err != nil {
		t.Fatal(err)
	}
	kube.InstallCRDs(t, crds...)
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return operatortest.NewClient(t, kube.RESTConfig(), scheme), kube.Namespace(t)
}

func TestTheServerRefusesWhatOneObjectShowsToBeWrong(t *testing.T) {
	c, namespace := serverWithCRDs(t)
	machine := func(spec v1alpha1.MachineSpec) client.Object { return &v1alpha1.Machine{Spec: spec} }
	with := func(change func(*v1alpha1.MachineService)) client.Object {
		s := service("", "app:1", 1)
		change(s)
		return s
	}
	env := func(from v1alpha1.EnvFrom) client.Object {
		return with(func(s *v1alpha1.MachineService) { s.Spec.EnvFrom = []v1alpha1.EnvFrom{from} })
	}
	configs := func(from ...v1alpha1.ConfigFrom) client.Object {
		return with(func(s *v1alpha1.MachineService) { s.Spec.ConfigsFrom = from })
	}
	tls, ssh := &v1alpha1.MachineTLS{SecretName: "s"}, &v1alpha1.MachineSSH{SecretName: "s"}
	for name, test := range map[string]struct {
		object client.Object
		// want is a part of the error; without it there must be none.
		want string
	}{
		"a socket":                    {machine(v1alpha1.MachineSpec{Address: "unix:///var/run/docker.sock"}), ""},
		"a port with TLS":             {machine(v1alpha1.MachineSpec{Address: "tcp://10.0.0.7:2376", TLS: tls}), ""},
		"a login":                     {machine(v1alpha1.MachineSpec{Address: "ssh://deploy@10.0.0.7:22/run/docker.sock", SSH: ssh}), ""},
		"a port without TLS":          {machine(v1alpha1.MachineSpec{Address: "tcp://10.0.0.7:2375"}), "needs tls"},
		"a socket with TLS":           {machine(v1alpha1.MachineSpec{Address: "unix:///s", TLS: tls}), "needs tls"},
		"a login without a key":       {machine(v1alpha1.MachineSpec{Address: "ssh://deploy@10.0.0.7"}), "needs ssh"},
		"an address of another kind":  {machine(v1alpha1.MachineSpec{Address: "http://10.0.0.7"}), "spec.address"},
		"a service":                   {with(func(*v1alpha1.MachineService) {}), ""},
		"a name with a dot":           {with(func(s *v1alpha1.MachineService) { s.Name = "a.b" }), "first part of its containers' names"},
		"a name of its own":           {with(func(s *v1alpha1.MachineService) { s.Spec.Name = "other" }), "leave spec.name out"},
		"steps without canary":        {with(func(s *v1alpha1.MachineService) { s.Spec.Strategy.Steps = []v1alpha1.CanaryStep{{Percent: 10}} }), "steps are for canary only"},
		"a hold without blue-green":   {with(func(s *v1alpha1.MachineService) { s.Spec.Strategy.Hold = &metav1.Duration{Duration: time.Second} }), "hold is for blue-green only"},
		"a strategy that there isn't": {with(func(s *v1alpha1.MachineService) { s.Spec.Strategy.Type = "big-bang" }), "spec.strategy.type"},
		"canary with steps and a pause": {with(func(s *v1alpha1.MachineService) {
			s.Spec.Strategy = v1alpha1.Strategy{Type: v1alpha1.StrategyCanary, Steps: []v1alpha1.CanaryStep{{Percent: 10, Pause: metav1.Duration{Duration: time.Minute}}}}
		}), ""},
		"a job": {with(func(s *v1alpha1.MachineService) {
			s.Spec.Mode, s.Spec.Replicas, s.Spec.DependsOn = api.ServiceModeJob, nil, []string{"database"}
		}), ""},
		"a mode that there isn't":         {with(func(s *v1alpha1.MachineService) { s.Spec.Mode = "jobs" }), "spec.mode"},
		"a service that waits for itself": {with(func(s *v1alpha1.MachineService) { s.Name, s.Spec.DependsOn = "self", []string{"self"} }), "names the service itself"},
		"a dependency twice":              {with(func(s *v1alpha1.MachineService) { s.Spec.DependsOn = []string{"db", "db"} }), "spec.dependsOn"},
		"variables of a Secret":           {env(v1alpha1.EnvFrom{Prefix: "A_", SecretRef: object("s")}), ""},
		"variables of a ConfigMap":        {env(v1alpha1.EnvFrom{ConfigMapRef: object("s")}), ""},
		"a variable of a Secret":          {env(v1alpha1.EnvFrom{Name: "A", SecretKeyRef: key("s", "k")}), ""},
		"a variable of a ConfigMap":       {env(v1alpha1.EnvFrom{Name: "A", ConfigMapKeyRef: key("s", "k")}), ""},
		"variables of nothing":            {env(v1alpha1.EnvFrom{Name: "A"}), "give one of secretRef"},
		"variables of two":                {env(v1alpha1.EnvFrom{SecretRef: object("s"), ConfigMapRef: object("s")}), "give one of secretRef"},
		"a variable without a name":       {env(v1alpha1.EnvFrom{SecretKeyRef: key("s", "k")}), "name is the variable"},
		"a name for all variables":        {env(v1alpha1.EnvFrom{Name: "A", SecretRef: object("s")}), "name is the variable"},
		"a prefix for one variable":       {env(v1alpha1.EnvFrom{Name: "A", Prefix: "B_", SecretKeyRef: key("s", "k")}), "prefix is for"},
		"a name that can't be":            {env(v1alpha1.EnvFrom{Name: "1=", SecretKeyRef: key("s", "k")}), "envFrom[0].name"},
		"a Secret without a name":         {env(v1alpha1.EnvFrom{SecretRef: object("")}), "envFrom[0].secretRef.name"},
		"a config of a Secret":            {configs(v1alpha1.ConfigFrom{Name: "a", SecretKeyRef: key("s", "k")}), ""},
		"a config of nothing":             {configs(v1alpha1.ConfigFrom{Name: "a"}), "give one of secretKeyRef"},
		"a config of two":                 {configs(v1alpha1.ConfigFrom{Name: "a", SecretKeyRef: key("s", "k"), ConfigMapKeyRef: key("s", "k")}), "give one of secretKeyRef"},
		"a config of a Secret, not a key": {configs(v1alpha1.ConfigFrom{Name: "a", SecretKeyRef: key("s", "")}), "configsFrom[0].secretKeyRef.key"},
		"two configs of a name": {configs(v1alpha1.ConfigFrom{Name: "a", SecretKeyRef: key("s", "k")},
			v1alpha1.ConfigFrom{Name: "a", ConfigMapKeyRef: key("s", "k")}), "Duplicate value"},
	} {
		t.Run(name, func(t *testing.T) {
			test.object.SetNamespace(namespace)
			if test.object.GetName() == "" {
				test.object.SetGenerateName("test-")
			}
			err := c.Create(t.Context(), test.object)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// A list of objects can't be read when one of them can't: one such service would stop the operator for all others.
func TestTheServerRefusesWhatCanNotBeRead(t *testing.T) {
	c, namespace := serverWithCRDs(t)
	for _, test := range []struct {
		path           string
		refused, taken []any
	}{
		{"container.stopGracePeriod", []any{"30", "1 minute", "-1s", "25h"}, []any{"0s", "24h"}},
		{"container.healthCheck.interval", []any{"30", "1d", "-1s"}, []any{"1m30s", "48h"}},
		{"container.healthCheck.timeout", []any{"30"}, []any{"30s"}},
		{"container.healthCheck.startPeriod", []any{"30"}, []any{"30s"}},
		{"container.healthCheck.startInterval", []any{"30"}, []any{"30s"}},
		{"update.delay", []any{"30", "1 minute", "1d", "", "9999999h", "25h", int64(30)}, []any{"0s", "1h0m0s"}},
		{"update.monitor", []any{"30", "25h"}, []any{"0s"}},
		{"update.healthTimeout", []any{"30", "25h", "0s"}, []any{"1ms"}},
		{"preDeploy.timeout", []any{"30", "25h", "0s"}, []any{"24h"}},
		{"strategy.hold", []any{"30", "25h", "-1s"}, []any{"24h"}},
		{"strategy.steps.pause", []any{"30", "25h", "-1s"}, []any{"24h"}},
		{"container.resources.cpu", []any{"1e99999999999999999999", "1e1.5", "-1"}, []any{"500m", int64(2)}},
		{"container.resources.memory", []any{"1e99999999999999999999", "1e2147483647", "1e-2147483000"}, []any{"1.5Gi", "1e9", int64(1 << 30)}},
		{"container.resources.memoryReservation", []any{"1e99999999999999999999"}, []any{"1Gi"}},
		{"container.resources.shmSize", []any{"1e99999999999999999999"}, []any{"64Mi"}},
		{"volumes.size", []any{"1e99999999999999999999"}, []any{"64Mi"}},
		{"ports.publishedPort", []any{int64(-1), int64(65536)}, []any{int64(0), int64(8080)}},
		{"replicas", []any{int64(-1), int64(10_001), int64(1 << 32)}, []any{int64(10_000)}},
	} {
		t.Run(test.path, func(t *testing.T) {
			create := func(value any) error {
				spec := map[string]any{"container": map[string]any{"image": "app:1"}}
				// The rest of what has to be there beside some fields.
				beside := map[string]map[string]any{
					"preDeploy": {"command": []any{"migrate"}}, "strategy": {"type": "blue-green"}, "steps": {"percent": int64(10)},
					"volumes": {"name": "cache", "type": "tmpfs"}, "ports": {"containerPort": int64(80), "mode": "host"},
				}
				in, names := spec, strings.Split(test.path, ".")
				for _, name := range names[:len(names)-1] {
					next, ok := in[name].(map[string]any)
					if !ok {
						next = maps.Clone(beside[name])
					}
					if next == nil {
						next = map[string]any{}
					}
					if in[name] = next; name == "steps" || name == "volumes" || name == "ports" {
						in[name] = []any{next}
					}
					if name == "steps" {
						in["type"] = "canary"
					}
					in = next
				}
				in[names[len(names)-1]] = value
				u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
				u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("MachineService"))
				u.SetNamespace(namespace)
				u.SetGenerateName("test-")
				return c.Create(t.Context(), u)
			}
			last := test.path[strings.LastIndex(test.path, ".")+1:]
			for _, value := range test.refused {
				if err := create(value); err == nil || !strings.Contains(err.Error(), last) || !apierrors.IsInvalid(err) {
					t.Errorf("%v: got %v, want that it is refused", value, err)
				}
			}
			for _, value := range test.taken {
				if err := create(value); err != nil {
					t.Errorf("%v: %v", value, err)
				}
			}
		})
	}
	if err := c.List(t.Context(), &v1alpha1.MachineServiceList{}, client.InNamespace(namespace)); err != nil {
		t.Errorf("what the server took can't be read: %v", err)
	}
}
