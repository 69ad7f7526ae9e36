package carrier_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
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

const desiredDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {services.operatorkit.io/owner: us}, annotations: {note: ours, a/b: ours, taken: ours}}
spec:
  replicas: 1
  template:
    spec:
      containers:
      - {name: web, image: "web:2", resources: {requests: {cpu: 1, memory: 1Gi}}}
      - {name: new, image: "new:2"}
`

const liveDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {}
  annotations: {note: theirs, a/b: theirs}
  managedFields:
  - {manager: us, operation: Apply, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"web"}': {".": {}, "f:image": {}, "f:name": {}}}}}}}}
  - {manager: scaler, operation: Update, subresource: scale, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:replicas": {}}}}
  - manager: injector
    operation: Update
    fieldsType: FieldsV1
    fieldsV1:
      "f:metadata": {"f:annotations": {"f:note": {}}}
      "f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"web"}': {".": {}, "f:name": {}, "f:resources": {"f:requests": {"f:cpu": {}}}}}}}}
spec:
  replicas: 5
  template:
    spec:
      containers:
      - {name: injected, image: "sidecar:1"}
      - {name: web, image: "web:1", resources: {requests: {cpu: 2, memory: 2Gi}}}
`

func TestWhatIsIgnoredIsLeftToOthersOrAsItIs(t *testing.T) {
	pointers := func(all ...string) []v1alpha1.IgnoredDifference {
		return []v1alpha1.IgnoredDifference{{Kind: "Deployment.apps", JSONPointers: all}}
	}
	for name, tt := range map[string]struct {
		ignored []v1alpha1.IgnoredDifference
		// want is how the result differs from what is desired, by hand.
		want func(object map[string]any)
	}{
		"nothing": {nil, func(map[string]any) {}},
		"objects of another kind and name": {[]v1alpha1.IgnoredDifference{
			{Kind: "StatefulSet", JSONPointers: []string{"/spec/replicas"}}, {Kind: "Deployment.extensions", JSONPointers: []string{"/spec/replicas"}},
			{Kind: "Deployment", Name: "other", JSONPointers: []string{"/spec/replicas"}},
		}, func(map[string]any) {}},
		"a field of another manager": {pointers("/spec/replicas"), func(o map[string]any) {
			unstructured.RemoveNestedField(o, "spec", "replicas")
		}},
		"a field of nobody else": {pointers("/metadata/annotations/a~1b", "/spec/template/spec/containers/0/image"), func(o map[string]any) {
			set(o, "theirs", "metadata", "annotations", "a/b")
			container(o, 0)["image"] = "web:1"
		}},
		"a map of which another manager has a part": {pointers("/metadata/annotations", "/spec/template/spec/containers/0/resources"), func(o map[string]any) {
			set(o, map[string]any{"a/b": "theirs"}, "metadata", "annotations")
			container(o, 0)["resources"] = map[string]any{"requests": map[string]any{"memory": "2Gi"}}
		}},
		"the marks stay":               {pointers("/metadata/labels"), func(map[string]any) {}},
		"a field that is not there":    {pointers("/spec/paused", "/spec/template/metadata/labels", "/spec/x/y"), func(map[string]any) {}},
		"an element that is not there": {pointers("/spec/template/spec/containers/1/image", "/spec/template/spec/containers/7/image"), func(map[string]any) {}},
		"a field that somebody has taken away": {pointers("/metadata/annotations/taken"), func(o map[string]any) {
			unstructured.RemoveNestedField(o, "metadata", "annotations", "taken")
		}},
		"what a manager has": {[]v1alpha1.IgnoredDifference{{Kind: "Deployment", Managers: []string{"injector", "absent"}}}, func(o map[string]any) {
			unstructured.RemoveNestedField(o, "metadata", "annotations", "note")
			container(o, 0)["resources"] = map[string]any{"requests": map[string]any{"memory": "1Gi"}}
		}},
		"what a manager has through a subresource": {[]v1alpha1.IgnoredDifference{{Kind: "Deployment", Managers: []string{"scaler"}}}, func(o map[string]any) {
			unstructured.RemoveNestedField(o, "spec", "replicas")
		}},
		"what we have ourselves": {[]v1alpha1.IgnoredDifference{{Kind: "Deployment", Managers: []string{"us"}}}, func(map[string]any) {}},
	} {
		t.Run(name, func(t *testing.T) {
			service := &carrier.Service{Entry: &v1alpha1.ServiceWithValues{IgnoreDifferences: tt.ignored}}
			desired, live := parse(t, desiredDeployment), parse(t, liveDeployment)
			got := service.Beside(desired, live, "us")
			want := parse(t, desiredDeployment)
			tt.want(want.Object)
			if diff := cmp.Diff(want.Object, got.Object); diff != "" {
				t.Errorf("it differs (-want +got):\n%s", diff)
			}
			if cmp.Diff(parse(t, desiredDeployment).Object, desired.Object) != "" || cmp.Diff(parse(t, liveDeployment).Object, live.Object) != "" {
				t.Error("what was given was changed")
			}
		})
	}
	service := &carrier.Service{}
	if desired := parse(t, desiredDeployment); service.Ignores(desired) || service.Beside(desired, parse(t, liveDeployment), "us") != desired {
		t.Error("a service that is taken away ignores something")
	}
}

func set(object map[string]any, value any, path ...string) {
	if err := unstructured.SetNestedField(object, value, path...); err != nil {
		panic(err)
	}
}

func container(object map[string]any, i int) map[string]any {
	containers, _, _ := unstructured.NestedFieldNoCopy(object, "spec", "template", "spec", "containers")
	return containers.([]any)[i].(map[string]any)
}
