package helm_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	release "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/helm"
)

const severalText = `apiVersion: v1
kind: ConfigMap
metadata: {name: plain}
data:
  text: |
    stays   # as it is
---
apiVersion: v1
kind: ConfigMap
metadata: {name: patched, labels: {tier: front}}
data: {size: "1", color: red}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: listed, labels: {tier: front}}, data: {size: "1"}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: alone}, data: {size: "1"}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: hooked, labels: {tier: front}, annotations: {"helm.sh/hook": pre-install}}
data: {size: "1"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: unwanted}
`

func patchedBy(patches ...v1alpha1.Patch) func(*carrier.Service) {
	return func(s *carrier.Service) { s.Entry.Patches = patches }
}

// sizes are the entries "size" of the ConfigMaps of the namespace.
func (k *kit) sizes() map[string]string {
	k.t.Helper()
	list := &corev1.ConfigMapList{}
	if err := k.user.List(k.t.Context(), list, client.InNamespace(k.namespace)); err != nil {
		k.t.Fatal(err)
	}
	sizes := map[string]string{}
	for _, found := range list.Items {
		if found.Name != "kube-root-ca.crt" {
			sizes[found.Name] = found.Data["size"]
		}
	}
	return sizes
}

func TestPatchesArePlannedAppliedRecordedAndHoldForHooks(t *testing.T) {
	k := newKit(t, helm.Config{})
	front := &v1alpha1.PatchTarget{Kind: "ConfigMap", LabelSelector: "tier=front"}
	chart := chartOf("app", "1.0.0", files{"all.yaml": severalText})
	service := k.service(chart, patchedBy(
		v1alpha1.Patch{Patch: "data: {size: \"{{ 2 }}\"}", Target: front},
		v1alpha1.Patch{Patch: "[{op: remove, path: /data/color}]", Target: &v1alpha1.PatchTarget{Name: "patched"}},
		v1alpha1.Patch{Patch: "{apiVersion: v1, kind: ConfigMap, metadata: {name: unwanted}, $patch: delete}"},
	))
	planned := k.compute(service)
	if said := text(planned.Changes); !strings.Contains(said, "{{ 2 }}") || strings.Contains(said, "unwanted") || strings.Contains(said, "red") {
		t.Errorf("the plan is:\n%s", said)
	}
	k.settle(service)
	want := map[string]string{"plain": "", "patched": "{{ 2 }}", "listed": "{{ 2 }}", "alone": "1", "hooked": "{{ 2 }}"}
	if got := k.sizes(); !maps.Equal(got, want) {
		t.Errorf("there is %v, want %v", got, want)
	}
	plain := &corev1.ConfigMap{}
	if err := k.user.Get(t.Context(), client.ObjectKey{Namespace: k.namespace, Name: "plain"}, plain); err != nil {
		t.Fatal(err)
	}
	if plain.Data["text"] != "stays   # as it is" && plain.Data["text"] != "stays   # as it is\n" {
		t.Errorf("what no patch is for has %q", plain.Data["text"])
	}
	found, err := k.helmConfig().Releases.Get("web", 1)
	if err != nil {
		t.Fatal(err)
	}
	recorded := found.(*release.Release).Manifest
	if !strings.Contains(recorded, "{{ 2 }}") || strings.Contains(recorded, "unwanted") || !strings.Contains(recorded, "metadata: {name: plain}\n") {
		t.Errorf("the record is:\n%s", recorded)
	}

	// Drift is what differs from the patched objects.
	if result := k.compute(service); len(result.Drift) > 0 {
		t.Errorf("there is drift:\n%s", text(result.Drift))
	}
	// Without its patches, the service is what the chart says.
	k.settle(k.service(chart))
	want = map[string]string{"plain": "", "patched": "1", "listed": "1", "alone": "1", "hooked": "{{ 2 }}", "unwanted": ""}
	if got := k.sizes(); !maps.Equal(got, want) {
		t.Errorf("there is %v, want %v", got, want)
	}
}

func TestAPatchForNothingTouchesNothing(t *testing.T) {
	k := newKit(t, helm.Config{})
	chart := chartOf("app", "1.0.0", files{"all.yaml": severalText})
	k.fails(k.service(chart, patchedBy(v1alpha1.Patch{Patch: "a: 1", Target: &v1alpha1.PatchTarget{Kind: "Deployment"}})),
		`patches[0]: no object has kind "Deployment"`)
	k.fails(k.service(chart, patchedBy(v1alpha1.Patch{Patch: "[{op: remove, path: /data/none}]", Target: &v1alpha1.PatchTarget{Name: "patched"}})),
		"patches[0]: ConfigMap patched of v1: ")
	if got := slices.Collect(maps.Keys(k.sizes())); len(got) > 0 {
		t.Errorf("there is %v", got)
	}
}
