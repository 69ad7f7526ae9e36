package main

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatIsChangedByHandIsWhatTheSubjectSets(t *testing.T) {
	desired, err := parse(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app/name: web}}
spec:
  replicas: 2
  paused: false
  minReadySeconds: 3
  strategy: {type: Recreate}
  template: {spec: {containers: [{name: web, image: "web:1", ports: [{containerPort: 80, protocol: TCP, hostIP: 10.0.0.1}]}]}}
---
apiVersion: v1
kind: Secret
metadata: {name: web}
data: {password: b25l}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: pages.example.com, annotations: {team: a}}
spec: {group: example.com}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{
			`[{"op":"replace","path":"/spec/minReadySeconds","value":4}]`,
			`[{"op":"replace","path":"/spec/paused","value":true}]`,
			`[{"op":"replace","path":"/spec/strategy/type","value":"Recreate-by-hand"}]`,
			`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"web:1-by-hand"}]`,
			`[{"op":"replace","path":"/spec/template/spec/containers/0/ports/0/hostIP","value":"10.0.0.1-by-hand"}]`,
			`[{"op":"replace","path":"/metadata/labels/app~1name","value":"web-by-hand"}]`,
		},
		{`[{"op":"replace","path":"/data/password","value":"YnkgaGFuZA=="}]`},
		{`[{"op":"replace","path":"/metadata/annotations/team","value":"a-by-hand"}]`},
	}
	for i, u := range desired {
		var patches []string
		for _, l := range leavesOf(u, u) {
			patches = append(patches, string(l.patch(u.GetKind())))
		}
		if diff := cmp.Diff(want[i], patches); diff != "" {
			t.Errorf("%s: %s", keyOf(u), diff)
		}
	}
	changed := desired[0].DeepCopy()
	changed.Object["spec"].(map[string]any)["minReadySeconds"] = int64(5)
	if got := leavesOf(desired[0], changed)[0].String(); got != "spec.paused" {
		t.Errorf("a field that is another one on the cluster would be changed, before %s", got)
	}
}

func TestWhatHelmRefusesIsDeployedOnlyWhereTheDocumentationSaysSo(t *testing.T) {
	for text, allowed := range map[string]bool{
		"spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'": true,
		"spec.selector: Invalid value: field is immutable":                                                false,
	} {
		found := false
		for _, d := range deviations {
			found = found || d.allows != nil && d.allows(&trial{subject: &subject{}}, errors.New(text))
		}
		if found != allowed {
			t.Errorf("%q is documented: %t", text, found)
		}
	}
}
