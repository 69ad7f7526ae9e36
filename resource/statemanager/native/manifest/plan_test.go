package manifest_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/operatortest/plantest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/manifest"
)

// world is a cluster without inventories, which plans don't show beside other changes.
type world struct{ plantest.Cluster }

func isInventory(o plan.Object) bool { return strings.HasPrefix(o.Name, manifest.InventoryPrefix) }

func (w *world) Things(ctx context.Context) (map[plan.Object]plantest.Thing, error) {
	things, err := w.Cluster.Things(ctx)
	maps.DeleteFunc(things, func(o plan.Object, _ plantest.Thing) bool { return isInventory(o) })
	return things, err
}

func (w *world) Writes() ([]plantest.Write, error) {
	all, err := w.Cluster.Writes()
	var writes []plantest.Write
	for _, write := range all {
		if !isInventory(write.Object) {
			writes = append(writes, write)
		}
	}
	return writes, err
}

// service is a resource whose primaries are services.
type service struct{ k *kit }

func (r service) Name() string { return "manifests" }

func (r service) Plan(ctx context.Context, _ plan.Event, obj any) ([]plan.Change, error) {
	result, err := r.k.carrier.Compute(ctx, r.k.cluster, r.k.cluster.client, obj.(*carrier.Service))
	if err != nil {
		return nil, err
	}
	var changes []plan.Change
	for _, change := range result.Changes {
		if !isInventory(change.Object) {
			changes = append(changes, change)
		}
	}
	return changes, nil
}

func (r service) EnsureCreated(ctx context.Context, obj any) error {
	result, err := r.k.carrier.Compute(ctx, r.k.cluster, r.k.cluster.client, obj.(*carrier.Service))
	if err != nil || len(result.Changes) == 0 {
		return err
	}
	return r.k.carrier.CarryOut(ctx, r.k.cluster, obj.(*carrier.Service), result)
}

func (r service) EnsureDeleted(ctx context.Context, obj any) error { return r.EnsureCreated(ctx, obj) }

// anyFiles are files with some objects of several kinds, in this version or that.
func anyFiles(t *rapid.T, k *kit) files {
	content := files{}
	for _, name := range []string{"a", "b", "c"} {
		switch rapid.IntRange(0, 3).Draw(t, name) {
		case 1:
			content[name+".yaml"] = configMap(name, "1")
		case 2:
			content[name+".yaml"] = configMap(name, "2") + "---\n" + deployment(name, "registry.example.com/"+name)
		case 3:
			content[name+".yaml"] = fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: %s}\nstringData: {x: '%d'}\n", name,
				rapid.IntRange(1, 2).Draw(t, "data of "+name))
		}
	}
	content["role.yaml"] = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: " + k.namespace + "-r}\n" +
		"rules: [{apiGroups: [''], resources: [pods], verbs: [" + rapid.SampledFrom([]string{"get", "list"}).Draw(t, "verb") + "]}]\n"
	return content
}

// anyService is a service of such files, as manifests or as a kustomization, of this owner or that.
func anyService(t *rapid.T, k *kit) *carrier.Service {
	content := anyFiles(t, k)
	options := []option{mode(v1alpha1.SyncModeContinuousWithDriftDetection)}
	if rapid.Bool().Draw(t, "of another owner") {
		options = append(options, ownedBy("other", "2"))
	}
	if rapid.Bool().Draw(t, "kustomized") {
		resources := strings.Join(slices.Sorted(maps.Keys(content)), ", ")
		content["kustomization.yaml"] = "resources: [" + resources + "]\ncommonAnnotations: {x: '1'}\n" +
			"configMapGenerator: [{name: conf, literals: [x=" + rapid.SampledFrom([]string{"1", "2"}).Draw(t, "literal") + "]}]\n"
		options = append(options, kustomize("."))
	}
	return k.service(content, options...)
}

// edits changes something behind the carrier's back: an object is changed or deleted.
func edits(t *rapid.T, k *kit) {
	for _, name := range []string{"a", "b", "c"} {
		object := &corev1.ConfigMap{}
		object.Namespace, object.Name = k.namespace, name
		var err error
		switch rapid.IntRange(0, 2).Draw(t, "what somebody does to "+name) {
		case 1:
			err = k.user.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(`{"data":{"text":"theirs","more":"1"}}`)),
				client.FieldOwner("kubectl-edit"))
		case 2:
			err = k.user.Delete(t.Context(), object)
		}
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
}

func TestPlanIsWhatIsApplied(t *testing.T) {
	k := newKit(t)
	w := &world{plantest.Cluster{
		Client: k.user, Faults: k.faults, Namespace: k.namespace,
		Kinds:     []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}, &appsv1.Deployment{}, &rbacv1.ClusterRole{}},
		Defaulted: map[string][]string{"Deployment": {"spec", "metadata.annotations"}, "Secret": {"type"}},
	}}
	var seen plan.Counts
	rapid.Check(t, func(rt *rapid.T) {
		var last *carrier.Service
		for range rapid.IntRange(1, 3).Draw(rt, "changes") {
			last = anyService(rt, k)
			seen = seen.Add(plantest.Update(rt, w, last, service{k}).Counts())
			if idle := plantest.Update(rt, w, last, service{k}).Counts(); idle != (plan.Counts{}) {
				rt.Errorf("there is something to do where nothing has changed: %s", idle)
			}
			edits(rt, k)
			seen = seen.Add(plantest.Update(rt, w, last, service{k}).Counts())
			if rapid.Bool().Draw(rt, "edited before the next change") {
				edits(rt, k)
			}
		}
		seen = seen.Add(plantest.Delete(rt, w, gone(last), service{k}).Counts())
	})
	if !testing.Short() && (seen.Create == 0 || seen.Update == 0 || seen.Delete == 0) { // a sample need not have them all
		t.Errorf("not all kinds of changes came up: %s", seen)
	}
}
