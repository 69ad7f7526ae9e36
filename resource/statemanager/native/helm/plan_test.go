package helm_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/operatortest/plantest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/helm"
)

// releasePrefix is what the names of the Secrets begin with in which Helm keeps releases.
const releasePrefix = "sh.helm.release.v1."

// world is a cluster in which a revision is none of the objects, and in which what an apply leaves as it was is no write: Helm
// applies all objects of a revision.
type world struct {
	plantest.Cluster
	last    map[plan.Object]plantest.Thing
	looked  int
	made    []plantest.Write
	release bool // a revision was written
}

func isRevision(o plan.Object) bool { return strings.HasPrefix(o.Name, releasePrefix) }

func (w *world) Things(ctx context.Context) (map[plan.Object]plantest.Thing, error) {
	things, err := w.Cluster.Things(ctx)
	for o := range things {
		if isRevision(o) {
			delete(things, o)
		}
	}
	w.last = things
	return things, err
}

func (w *world) Writes() ([]plantest.Write, error) {
	all, err := w.Cluster.Writes()
	if err != nil {
		return nil, err
	}
	now, err := w.Cluster.Things(context.Background())
	if err != nil {
		return nil, err
	}
	for _, write := range all[w.looked:] {
		was, existed := w.last[write.Object]
		switch {
		case isRevision(write.Object):
			w.release = true
		case !write.Delete && existed && was.Object == now[write.Object].Object:
		default:
			w.made = append(w.made, write)
		}
	}
	w.looked = len(all)
	return slices.Clone(w.made), nil
}

// charts is a resource whose primaries are services. It keeps what was said of the release itself.
type charts struct {
	k    *kit
	said []string
}

func (r *charts) Name() string { return "charts" }

func (r *charts) Plan(ctx context.Context, _ plan.Event, obj any) ([]plan.Change, error) {
	result, err := r.k.carrier.Compute(ctx, r.k.cluster, r.k.cluster.client, obj.(*carrier.Service))
	if err != nil {
		return nil, err
	}
	r.said = nil
	var changes []plan.Change
	for _, change := range result.Changes {
		if change.Object.Kind == "HelmRelease" {
			r.said = append(r.said, string(change.Action)+" "+change.Object.Name)
		} else {
			changes = append(changes, change)
		}
	}
	return changes, nil
}

func (r *charts) EnsureCreated(ctx context.Context, obj any) error {
	result, err := r.k.carrier.Compute(ctx, r.k.cluster, r.k.cluster.client, obj.(*carrier.Service))
	if err != nil || len(result.Changes) == 0 {
		return err
	}
	return r.k.carrier.CarryOut(ctx, r.k.cluster, obj.(*carrier.Service), result)
}

func (r *charts) EnsureDeleted(ctx context.Context, obj any) error { return r.EnsureCreated(ctx, obj) }

// anyChart is a chart with some objects of several kinds, in this version or that.
func anyChart(t *rapid.T, k *kit, version string) files {
	chart := chartOf("any", version, files{"values.yaml": "text: hello\n"})
	for _, name := range []string{"a", "b", "c"} {
		file := "templates/" + name + ".yaml"
		switch rapid.IntRange(0, 4).Draw(t, name) {
		case 1:
			chart[file] = strings.ReplaceAll(pageTemplate, "{{ .Release.Name }}-page", name)
		case 2:
			chart[file] = strings.NewReplacer("{{ .Release.Name }}-extra", name, "{}", "{x: '1'}").Replace(extraTemplate) +
				"---\n" + strings.ReplaceAll(serverTemplate, "server", "server-"+name)
		case 3:
			chart[file] = "apiVersion: v1\nkind: Secret\nmetadata: {name: " + name + "}\nstringData: {x: {{ .Values.text | quote }}}\n"
		case 4:
			chart[file] = "apiVersion: v1\nkind: Service\nmetadata: {name: " + name + "}\nspec: {clusterIP: None, ports: [{port: " +
				rapid.SampledFrom([]string{"80", "81"}).Draw(t, "port of "+name) + "}]}\n"
		}
	}
	chart["templates/role.yaml"] = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: " + k.namespace + "-r}\n" +
		"rules: [{apiGroups: [''], resources: [pods], verbs: [" + rapid.SampledFrom([]string{"get", "list"}).Draw(t, "verb") + "]}]\n"
	return chart
}

// edits changes something behind the carrier's back: an object is changed or deleted.
func edits(t *rapid.T, k *kit) {
	for _, name := range []string{"a", "b", "c"} {
		configMap := &corev1.ConfigMap{}
		configMap.Namespace, configMap.Name = k.namespace, name
		var err error
		switch rapid.IntRange(0, 2).Draw(t, "what somebody does to "+name) {
		case 1:
			err = k.user.Patch(t.Context(), configMap, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"text":"drifted","more":"1"}}`)),
				client.FieldOwner("kubectl-edit"))
		case 2:
			err = k.user.Delete(t.Context(), configMap)
		}
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
}

func TestThePlanIsWhatIsDoneThen(t *testing.T) {
	k := newKit(t, helm.Config{})
	w := &world{Cluster: plantest.Cluster{
		Client: k.user, Faults: k.faults, Namespace: k.namespace,
		Kinds: []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}, &corev1.Service{}, &appsv1.Deployment{}, &rbacv1.ClusterRole{}},
		Defaulted: map[string][]string{
			"Deployment": {"spec", "metadata.annotations"}, "Secret": {"type", "data"}, "Service": {"spec"},
		},
	}}
	r := &charts{k: k}
	var seen plan.Counts
	told := func(rt *rapid.T, want bool) {
		if said := len(r.said) > 0; said != want || w.release != want {
			rt.Errorf("the plan says of the release %v, and that a revision was written is %v", r.said, w.release)
		}
		w.release = false
	}
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		w.release = false
		driftless := mode(v1alpha1.SyncModeContinuousWithDriftDetection)
		for range rapid.IntRange(1, 3).Draw(rt, "changes") {
			round++
			chart := anyChart(rt, k, fmt.Sprintf("1.0.%d", round))
			text := values(map[string]any{"text": rapid.SampledFrom([]string{"hello", "bye"}).Draw(rt, "text")})
			wanted := k.service(chart, text, driftless)
			seen = seen.Add(plantest.Update(rt, w, wanted, r).Counts())
			told(rt, true)
			seen = seen.Add(plantest.Update(rt, w, wanted, r).Counts())
			told(rt, false)
			edits(rt, k)
			seen = seen.Add(plantest.Update(rt, w, wanted, r).Counts())
			told(rt, false)
			if rapid.Bool().Draw(rt, "edited before the next change") {
				edits(rt, k)
			}
		}
		removal := k.service(nil, gone)
		seen = seen.Add(plantest.Delete(rt, w, removal, r).Counts())
		told(rt, true)
		seen = seen.Add(plantest.Delete(rt, w, removal, r).Counts())
		told(rt, true)
		if result := k.compute(removal); result.Found != nil || len(result.Changes) > 0 {
			rt.Errorf("it is not gone: %s", text(result.Changes))
		}
	})
	if !testing.Short() && (seen.Create == 0 || seen.Update == 0 || seen.Delete == 0) { // a sample need not have them all
		t.Errorf("not all kinds of changes came up: %s", seen)
	}
}
