package machines_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestTheServerRefusesWhatOneObjectShowsToBeWrong(t *testing.T) {
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
	c := operatortest.NewClient(t, kube.RESTConfig(), scheme)
	namespace := kube.Namespace(t)
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
