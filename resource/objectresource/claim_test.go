package objectresource_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

func TestAnObjectThatExistsIsRefusedUnlessAdoptionIsAskedFor(t *testing.T) {
	k := newKit(t)
	p := k.primary("home")
	k.create(k.data("a", map[string]string{"x": "theirs", "theirs": "1"}))
	desired := just(k.data("a", map[string]string{"x": "ours"}))

	_, err := k.tryPlan(k.resource(desired), p)
	var refused *objectresource.RefusedError
	if !errors.As(err, &refused) || !refused.Adoptable {
		t.Fatalf("got %v, want a refusal", err)
	}
	want := "refusing to take over ConfigMap " + k.namespace + "/a: it exists already and has no owner: " +
		"delete it or choose another name, or set Adopt to take it over"
	if diff := cmp.Diff(want, refused.Error()); diff != "" {
		t.Error(diff)
	}
	if framework.IsPermanent(err) {
		t.Error("the refusal is permanent, but the object may go away without a change of the primary")
	}
	if before, _ := k.configMap("a"); before.Data["x"] != "theirs" {
		t.Errorf("a refused object was changed: %v", before.Data)
	}

	r := k.resource(desired, adopt)
	if changes := k.plan(r, p); len(changes) != 1 || changes[0].Action != plan.Update {
		t.Errorf("got %v, want an update", lines(changes))
	}
	k.update(r, p)
	k.wantQuiet(r, p)
	a, _ := k.configMap("a")
	if diff := cmp.Diff(map[string]string{"x": "ours", "theirs": "1"}, a.Data); diff != "" {
		t.Error(diff)
	}
	if !metav1.IsControlledBy(a, p) {
		t.Error("the adopted object has no owner reference")
	}
}

func TestAnObjectOfAnotherOwnerIsRefusedEvenWithAdoption(t *testing.T) {
	for name, tc := range map[string]struct {
		claim func(k *kit)
		want  string
	}{
		"by controller reference": {
			claim: func(k *kit) {
				other := k.primary("other")
				a := k.data("a", nil)
				a.OwnerReferences = []metav1.OwnerReference{
					*metav1.NewControllerRef(other, corev1.SchemeGroupVersion.WithKind("ConfigMap")),
				}
				k.create(a)
			},
			want: "it is controlled by ConfigMap other",
		},
		"by label": {
			claim: func(k *kit) {
				k.update(k.resource(just(k.data("a", nil))), k.primary("other"))
				k.patch(k.meta("a"), `{"metadata":{"ownerReferences":null}}`)
			},
			want: `it is of resource "children" of framework "operatorkit" of operator "` + identity.Program() + `", for ConfigMap/`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			p := k.primary("home")
			tc.claim(k)
			_, err := k.tryPlan(k.resource(just(k.data("a", nil)), adopt), p)
			var refused *objectresource.RefusedError
			if !errors.As(err, &refused) || refused.Adoptable || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want a refusal with %q", err, tc.want)
			}
		})
	}
}

// appearing is a primary whose object appears after the patch was computed.
func appearing(k *kit, r *resource, p primary, appear func()) error {
	k.t.Helper()
	current, err := r.GetCurrentState(k.t.Context(), p)
	if err != nil {
		k.t.Fatal(err)
	}
	desired, err := r.GetDesiredState(k.t.Context(), p)
	if err != nil {
		k.t.Fatal(err)
	}
	patch, err := r.NewUpdatePatch(k.t.Context(), p, current, desired)
	if err != nil {
		k.t.Fatal(err)
	}
	create, ok := patch.CreateChange()
	if !ok {
		k.t.Fatal("nothing is to be created")
	}
	appear()
	return r.ApplyCreateChange(k.t.Context(), p, create)
}

func TestAnObjectThatAppearsBeforeItsCreationIsNotTakenOver(t *testing.T) {
	k := newKit(t)
	p := k.primary("home")
	// Without a common field, there is no conflict between field managers that would tell.
	r := k.resource(just(k.data("a", map[string]string{"x": "ours"})))
	err := appearing(k, r, p, func() {
		k.create(k.data("a", map[string]string{"theirs": "1"}))
	})
	if !apierrors.IsConflict(err) {
		t.Errorf("got %v, want a conflict", err)
	}
	if _, err := k.tryPlan(r, p); !errors.As(err, new(*objectresource.RefusedError)) {
		t.Errorf("then got %v, want a refusal", err)
	}
	a, _ := k.configMap("a")
	if diff := cmp.Diff(map[string]string{"theirs": "1"}, a.Data); diff != "" {
		t.Error(diff)
	}
	if len(a.Labels) > 0 {
		t.Errorf("the object got labels %v", a.Labels)
	}
}

func TestACreationThatWasCarriedOutAlreadyIsAConflictAndThenAnUpdate(t *testing.T) {
	k := newKit(t)
	p := k.primary("home")
	r := k.resource(just(k.data("a", map[string]string{"x": "1"})))
	err := appearing(k, r, p, func() {
		k.update(k.resource(just(k.data("a", map[string]string{"x": "older"}))), p)
	})
	if !apierrors.IsConflict(err) {
		t.Fatalf("got %v, want a conflict", err)
	}
	k.update(r, p)
	k.wantQuiet(r, p)
}

func TestAnObjectThatBelongsToSomebodyElseIsNotDeleted(t *testing.T) {
	for name, tc := range map[string]struct {
		give func(k *kit)
	}{
		"given to another controller": {func(k *kit) {
			other := k.primary("other")
			k.patch(k.meta("a"), `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"other","uid":"`+
				string(other.UID)+`","controller":true}]}}`)
		}},
		"released by removing the label": {func(k *kit) {
			k.patch(k.meta("a"), `{"metadata":{"labels":null}}`)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			p := k.primary("home")
			k.update(k.resource(just(k.data("a", nil))), p)
			tc.give(k)
			nothing := k.resource(just())
			k.wantPlan(nothing, p)
			if err := framework.ProcessDelete(t.Context(), p, []framework.Resource{nothing}); err != nil {
				t.Fatal(err)
			}
			if _, exists := k.configMap("a"); !exists {
				t.Error("the object of somebody else was deleted")
			}
		})
	}
}

func TestACopyOfAnObjectIsNotDeleted(t *testing.T) {
	k := newKit(t)
	p := k.primary("home")
	r := k.resource(just(k.data("a", nil)))
	k.update(r, p)
	a, _ := k.configMap("a")
	backup := a.DeepCopy()
	backup.ObjectMeta = metav1.ObjectMeta{
		Namespace: k.namespace, Name: "backup",
		Labels: a.Labels, Annotations: a.Annotations, OwnerReferences: a.OwnerReferences,
	}
	k.create(backup)
	k.wantQuiet(r, p)
	if err := framework.ProcessDelete(t.Context(), p, []framework.Resource{r}); err != nil {
		t.Fatal(err)
	}
	if _, exists := k.configMap("backup"); !exists {
		t.Error("the copy was deleted")
	}
}

func TestR16AControllerReferenceAloneMakesNoObjectOurs(t *testing.T) {
	k := newKit(t)
	p := k.primary("home")
	r := k.resource(just(k.data("a", nil)))
	k.update(r, p)
	k.patch(k.meta("a"), `{"metadata":{"labels":null,"annotations":null}}`)
	_, err := k.tryPlan(r, p)
	var refused *objectresource.RefusedError
	if !errors.As(err, &refused) || !refused.Adoptable || !strings.Contains(err.Error(), "although its controller is the primary") {
		t.Errorf("got %v, want a refusal", err)
	}
	k.deletionOf(r, p)
	if _, exists := k.configMap("a"); !exists {
		t.Error("it was deleted")
	}
	adopting := k.resource(just(k.data("a", nil)), adopt)
	k.update(adopting, p)
	k.wantQuiet(adopting, p)
}

func TestAPrimaryThatWasMadeAnewGetsItsObjectsBack(t *testing.T) {
	k := newKit(t)
	p := k.primary("home")
	r := k.resource(just(k.data("a", nil)))
	k.update(r, p)
	if err := k.user.Delete(t.Context(), p, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
		t.Fatal(err)
	}
	k.until("the primary is gone", func() bool { _, exists := k.configMap("home"); return !exists })
	again := k.primary("home")
	k.update(r, again)
	k.wantQuiet(r, again)
	a, _ := k.configMap("a")
	if !metav1.IsControlledBy(a, again) || len(a.OwnerReferences) != 1 {
		t.Errorf("owner references are %v, want the new primary alone", a.OwnerReferences)
	}
}

func TestARefusedObjectStopsNoOther(t *testing.T) {
	k := newKit(t)
	p := k.primary("home")
	k.update(k.resource(just(k.data("changed", nil), k.data("old", nil))), p)
	k.create(k.data("refused", nil))
	k.create(k.data("refused-too", nil))
	nameless := &corev1.ConfigMap{}
	r := k.resource(just(k.data("refused", nil), k.data("refused-too", nil), nameless, k.data("new", nil), k.data("changed", map[string]string{"x": "1"})))

	planned, err := framework.PlanUpdate(t.Context(), p, []framework.Resource{r})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"create ConfigMap new", "update ConfigMap changed", `  data.x: "1"`}, lines(planned.Resources[0].Changes)); diff != "" {
		t.Errorf("the plan (-want +got):\n%s", diff)
	}
	err = framework.ProcessUpdate(t.Context(), p, []framework.Resource{r})
	if err == nil || framework.IsPermanent(err) {
		t.Errorf("got %v, want an error that may pass", err)
	}
	for _, told := range []string{"/refused: it exists already", "/refused-too: it exists already", "desired object 2: a ConfigMap has no name"} {
		if err == nil || !strings.Contains(err.Error(), told) || !strings.Contains(planned.Resources[0].Error, told) {
			t.Errorf("%q is not told by the plan, %q, and the error, %v", told, planned.Resources[0].Error, err)
		}
	}
	if _, there := k.configMap("new"); !there {
		t.Error("what was not refused was not created")
	}
	if changed, _ := k.configMap("changed"); changed.Data["x"] != "1" {
		t.Error("what was not refused was not updated")
	}
	if _, there := k.configMap("old"); !there {
		t.Error("something was deleted although what may replace it is refused")
	}
}

func TestAnObjectThatTheServerRefusesStopsNoOther(t *testing.T) {
	k := newKit(t)
	p := k.primary("home")
	k.update(k.resource(just(k.data("changed", nil))), p)
	invalid := k.data("invalid", map[string]string{"not a key!": ""})
	// Of a list that has one thing twice the server says with neither a reason nor a code of its own that it can't be applied.
	twice := &corev1.Service{ObjectMeta: k.data("twice", nil).ObjectMeta}
	twice.Spec.Ports = []corev1.ServicePort{{Name: "web", Port: 80}, {Name: "also", Port: 80}}
	r := k.resource(just(invalid, twice, k.data("new", nil), k.data("changed", map[string]string{"x": "1"})))

	err := framework.ProcessUpdate(t.Context(), p, []framework.Resource{r})
	for _, name := range []string{"ConfigMap " + k.namespace + "/invalid", "Service " + k.namespace + "/twice"} {
		if err == nil || !strings.Contains(err.Error(), "create "+name) {
			t.Errorf("got %v, want the error of %s", err, name)
		}
	}
	if _, there := k.configMap("new"); !there {
		t.Error("what was not refused was not created")
	}
	if changed, _ := k.configMap("changed"); changed.Data["x"] != "1" {
		t.Error("what was not refused was not updated")
	}
}
