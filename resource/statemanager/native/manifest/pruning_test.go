package manifest_test

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/manifest"
)

// generatedMaps are the names of the ConfigMaps of a kustomization that generates one.
func (k *kit) generatedMaps() []string {
	k.t.Helper()
	var all corev1.ConfigMapList
	if err := k.user.List(k.t.Context(), &all); err != nil {
		k.t.Fatal(err)
	}
	var names []string
	for i := range all.Items {
		if all.Items[i].Namespace == k.namespace && strings.HasPrefix(all.Items[i].Name, "settings-") {
			names = append(names, all.Items[i].Name)
		}
	}
	return names
}

// TestWhatIsPrunedGoesWhenTheNewVersionIsReady: Pods of the version before may need it until then. It is found again by another process.
func TestWhatIsPrunedGoesWhenTheNewVersionIsReady(t *testing.T) {
	k := newKit(t)
	version := func(v string) *carrier.Service {
		return k.service(files{
			"kustomization.yaml": "resources: [web.yaml]\nconfigMapGenerator: [{name: settings, literals: [version=" + v + "]}]\n",
			"web.yaml":           strings.Replace(deployment("web", "registry.example.com/web:"+v), "template:", "strategy: {}\n  template:", 1),
		}, kustomize("."))
	}
	k.settle(version("1"))
	k.ready("web")
	old := k.generatedMaps()

	k.carryOut(version("2"), k.compute(version("2")))
	if names := k.generatedMaps(); len(names) != 2 {
		t.Fatalf("there are the maps %q while the new version is not ready", names)
	}
	var err error
	if k.carrier, err = manifest.New(manifest.Config{}); err != nil { // another process
		t.Fatal(err)
	}
	result := k.compute(version("2"))
	k.wants(result.Changes)
	k.wantsPhase(result, v1alpha1.ServiceStateProvisioning)
	if notes := strings.Join(result.Notes, "\n"); !strings.Contains(notes, old[0]) || !strings.Contains(notes, "when the objects of the new version are ready") {
		t.Errorf("the notes do not say what is still to be deleted: %q", notes)
	}

	// Another version comes before the second one is ready.
	k.carryOut(version("3"), k.compute(version("3")))
	if names := k.generatedMaps(); len(names) != 3 {
		t.Fatalf("there are the maps %q while no new version is ready", names)
	}
	k.ready("web")
	result = k.compute(version("3"))
	k.wantsPhase(result, v1alpha1.ServiceStateDeployed)
	if len(result.Changes) != 2 || !slices.Contains(told(result.Changes), "delete ConfigMap "+old[0]) {
		t.Errorf("the changes when it is ready are %q", told(result.Changes))
	}
	k.carryOut(version("3"), result)
	k.wants(k.compute(version("3")).Changes)
	if names := k.generatedMaps(); len(names) != 1 || slices.Contains(old, names[0]) {
		t.Errorf("there are the maps %q in the end", names)
	}
}

// TestARemovalTakesAlongWhatIsStillToBePruned: it is in the inventory until it is deleted.
func TestARemovalTakesAlongWhatIsStillToBePruned(t *testing.T) {
	k := newKit(t)
	web := deployment("web", "registry.example.com/web:1")
	k.settle(k.service(files{"web.yaml": web, "old.yaml": configMap("old", "1")}))
	next := k.service(files{"web.yaml": web})
	result := k.compute(next)
	k.wants(result.Changes, "update Secret "+manifest.InventoryPrefix+"web")
	if notes := strings.Join(result.Notes, "\n"); !strings.Contains(notes, "deleted when the objects of the new version are ready: ConfigMap "+k.namespace+"/old") {
		t.Errorf("the plan does not say what happens to it: %q", notes)
	}
	k.carryOut(next, result)
	if !k.exists("old", &corev1.ConfigMap{}) {
		t.Error("it is deleted before the deployment is ready")
	}
	k.settle(gone(next))
	if k.exists("old", &corev1.ConfigMap{}) || k.exists("web", &appsv1.Deployment{}) {
		t.Error("something is left")
	}
}

// TestAWantedObjectIsNotPruned: what was to be pruned is part of the service again.
func TestAWantedObjectIsNotPruned(t *testing.T) {
	k := newKit(t)
	web := deployment("web", "registry.example.com/web:1")
	both := files{"web.yaml": web, "a.yaml": configMap("a", "1")}
	k.settle(k.service(both))
	k.carryOut(k.service(files{"web.yaml": web}), k.compute(k.service(files{"web.yaml": web})))
	k.settle(k.service(both))
	k.ready("web")
	k.wants(k.compute(k.service(both)).Changes)
	if !k.exists("a", &corev1.ConfigMap{}) {
		t.Error("it is deleted")
	}
}
