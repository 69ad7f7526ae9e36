package operatortest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func parse(t *testing.T, documents string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for _, document := range strings.Split(documents, "---\n") {
		object := &unstructured.Unstructured{}
		text, err := yaml.YAMLToJSON([]byte(document))
		if err == nil {
			err = object.UnmarshalJSON(text)
		}
		if err != nil {
			t.Fatalf("parse %q: %v", document, err)
		}
		objects = append(objects, object)
	}
	return objects
}

// statesOf normalizes the objects of two runs, which were in the namespaces run-one
// and run-two.
func statesOf(t *testing.T, first, second string) (one, two map[string]any) {
	t.Helper()
	secret := []byte("key of this test")
	one, err := normalize(parse(t, first), "run-one", secret, nil)
	if err != nil {
		t.Fatal(err)
	}
	two, err = normalize(parse(t, second), "run-two", secret, nil)
	if err != nil {
		t.Fatal(err)
	}
	return one, two
}

func TestStatesAreEqualWhenOnlyWhatDiffersByNatureDiffers(t *testing.T) {
	for _, test := range []struct{ name, first, second string }{
		{
			name: "identity",
			first: `
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: run-one, uid: 11111111-1111-4111-8111-111111111111, resourceVersion: "1", generation: 1, creationTimestamp: "2026-01-01T00:00:00Z"}
data: {host: a.run-one.svc, updated: "at 2026-01-01T00:00:00.5+01:00"}`,
			second: `
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: run-two, uid: 22222222-2222-4222-8222-222222222222, resourceVersion: "7", generation: 3, creationTimestamp: "2027-01-01T00:00:00Z"}
data: {host: a.run-two.svc, updated: "at 2027-01-01T00:00:00Z"}`,
		},
		{
			name: "names that are generated, where they are used, too",
			first: `
apiVersion: v1
kind: Pod
metadata: {name: web-abcde, generateName: web-, uid: 11111111-1111-4111-8111-111111111111}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: pods, ownerReferences: [{apiVersion: v1, kind: Pod, name: web-abcde, uid: 11111111-1111-4111-8111-111111111111}]}
data: {pod: web-abcde}`,
			second: `
apiVersion: v1
kind: Pod
metadata: {name: web-vwxyz, generateName: web-, uid: 22222222-2222-4222-8222-222222222222}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: pods, ownerReferences: [{apiVersion: v1, kind: Pod, name: web-vwxyz, uid: 22222222-2222-4222-8222-222222222222}]}
data: {pod: web-vwxyz}`,
		},
		{
			name: "generations that were observed",
			first: `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, generation: 2}
status: {observedGeneration: 2, conditions: [{type: Ready, observedGeneration: 1}]}`,
			second: `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, generation: 5}
status: {observedGeneration: 5, conditions: [{type: Ready, observedGeneration: 3}]}`,
		},
		{
			name: "times and order of managers",
			first: `
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  managedFields:
  - {manager: x, operation: Apply, time: "2026-01-01T00:00:00Z", fieldsV1: {"f:data": {}}}
  - {manager: y, operation: Update, time: "2026-01-01T00:00:01Z"}`,
			second: `
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  managedFields:
  - {manager: y, operation: Update, time: "2027-01-01T00:00:00Z"}
  - {manager: x, operation: Apply, time: "2027-01-01T00:00:01Z", fieldsV1: {"f:data": {}}}`,
		},
		{
			name: "what a Service is given",
			first: `
apiVersion: v1
kind: Service
metadata: {name: a}
spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [{port: 80, nodePort: 30001}]}`,
			second: `
apiVersion: v1
kind: Service
metadata: {name: a}
spec: {clusterIP: 10.0.0.9, clusterIPs: [10.0.0.9], ports: [{port: 80, nodePort: 30009}]}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			one, two := statesOf(t, test.first, test.second)
			if diff := cmp.Diff(one, two); diff != "" {
				t.Errorf("the states differ (-first +second):\n%s", diff)
			}
		})
	}
}

func TestStatesDifferWhenAnythingElseDoes(t *testing.T) {
	const owned = `
apiVersion: v1
kind: ConfigMap
metadata: {name: owner, uid: 11111111-1111-4111-8111-111111111111}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: child, ownerReferences: [{kind: ConfigMap, name: owner, uid: UID}]}`
	const generated = `
apiVersion: v1
kind: ConfigMap
metadata: {name: web-abcde, generateName: web-}`
	const generation = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, generation: 2}
status: {observedGeneration: N}`
	const service = `
apiVersion: v1
kind: Service
metadata: {name: a}
spec: {clusterIP: IP, ports: [{port: 80}]}`
	const secret = `
apiVersion: v1
kind: Secret
metadata: {name: a}
data: {password: VALUE}`
	for _, test := range []struct{ name, first, second string }{
		{"data", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: w}}"},
		{"kinds", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", "{apiVersion: v1, kind: Secret, metadata: {name: a}}"},
		{"managers", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, managedFields: [{manager: x}]}}", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, managedFields: [{manager: y}]}}"},
		{"one object of a generated name or two", generated, generated + "\n---" + strings.ReplaceAll(generated, "abcde", "vwxyz")},
		{
			"an owner or one before it of the same name",
			strings.ReplaceAll(owned, "UID", "11111111-1111-4111-8111-111111111111"),
			strings.ReplaceAll(owned, "UID", "22222222-2222-4222-8222-222222222222"),
		},
		{"a generation that was observed or not", strings.ReplaceAll(generation, "N", "2"), strings.ReplaceAll(generation, "N", "1")},
		{"a headless Service or not", strings.ReplaceAll(service, "IP", "None"), strings.ReplaceAll(service, "IP", "10.0.0.1")},
		{"data of a Secret", strings.ReplaceAll(secret, "VALUE", "b25l"), strings.ReplaceAll(secret, "VALUE", "dHdv")},
	} {
		t.Run(test.name, func(t *testing.T) {
			one, two := statesOf(t, test.first, test.second)
			if cmp.Equal(one, two) {
				t.Errorf("the states are equal: %v", one)
			}
		})
	}
}

func TestNoDataOfASecretIsInAState(t *testing.T) {
	state, _ := statesOf(t, `
apiVersion: v1
kind: Secret
metadata:
  name: a
  annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"data":{"password":"aHVudGVyMg=="}}'}
data: {password: aHVudGVyMg==}
stringData: {password: hunter2}`, "{apiVersion: v1, kind: Secret, metadata: {name: a}}")
	text := asYAML(state)
	for _, secret := range []string{"aHVudGVyMg", "hunter2"} {
		if strings.Contains(text, secret) {
			t.Errorf("the state has %q:\n%s", secret, text)
		}
	}
	if !strings.Contains(text, "password: <digest ") {
		t.Errorf("the state lacks the digest of the password:\n%s", text)
	}
}
