package upgrade_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/operatorkit/operatorkit/operator/internal/upgrade"
)

func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = u.UnmarshalJSON(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestAnObjectIsReadyIfItsStatusSaysSoOfItsNewestGeneration(t *testing.T) {
	replicas := int32(1)
	starting := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: appsv1.DeploymentSpec{Replicas: &replicas}}
	starting.Status.ObservedGeneration = 1
	const head = "apiVersion: example.com/v1\nkind: Site\nmetadata: {name: a, generation: 2}\n"
	for name, c := range map[string]struct {
		obj  any
		want bool
	}{
		"ready":                          {parsed(t, head+"status: {conditions: [{type: Ready, status: 'True', observedGeneration: 2}]}"), true},
		"ready, without a generation":    {parsed(t, head+"status: {conditions: [{type: Ready, status: 'True'}]}"), true},
		"ready before":                   {parsed(t, head+"status: {conditions: [{type: Ready, status: 'True', observedGeneration: 1}]}"), false},
		"not ready":                      {parsed(t, head+"status: {conditions: [{type: Ready, status: 'False', observedGeneration: 2}]}"), false},
		"unknown":                        {parsed(t, head+"status: {conditions: [{type: Ready, status: Unknown, observedGeneration: 2}]}"), false},
		"other conditions":               {parsed(t, head+"status: {conditions: [{type: Served, status: 'False'}]}"), true},
		"reconciling":                    {parsed(t, head+"status: {conditions: [{type: Reconciling, status: 'True'}]}"), false},
		"the status is behind":           {parsed(t, head+"status: {observedGeneration: 1}"), false},
		"conditions of another kind":     {parsed(t, head+"status: {conditions: [odd]}"), false},
		"without a status":               {parsed(t, head), true},
		"a ConfigMap":                    {&corev1.ConfigMap{}, true},
		"an object of another system":    {"entry", true},
		"nothing":                        {nil, true},
		"a Deployment that has to start": {starting, false},
	} {
		if got := upgrade.IsReady(c.obj); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
	}
}

func TestABuildIsAnExecutableWithItsArgumentsAndVariables(t *testing.T) {
	this, err := upgrade.ThisBuild("v1")
	if err != nil {
		t.Fatal(err)
	}
	again, _ := upgrade.ThisBuild("v2")
	if this.ID != again.ID || len(this.ID) != 16 {
		t.Errorf("builds %q and %q", this, again)
	}
	if other, _ := upgrade.ThisBuild("v1", "WORKERS=3"); other.ID == this.ID {
		t.Error("another variable makes no other build")
	}
	if text := this.String(); text != "v1 ("+this.ID+")" {
		t.Errorf("it is called %q", text)
	}
}
