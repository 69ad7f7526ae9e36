package sveltos_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// scoped is the scope of a framework's work.
func (w *world) scoped(operator string, former ...string) *identity.Scope {
	return &identity.Scope{Identity: identity.Identity{Operator: operator, Framework: "statemanager-sveltos", FormerOperators: former}}
}

func TestR16AnotherOperatorsProfileIsRefusedByName(t *testing.T) {
	w := onOwn(t)
	chart(w.set, "web", "1.0.0")
	one, two := identity.NewContext(t.Context(), w.scoped("one")), identity.NewContext(t.Context(), w.scoped("two"))
	w.settleIn(one, w.set)
	before := w.faults.Count()
	_, err := w.manager.Compute(two, w.set)
	if err == nil || !carrier.IsConflict(err) || !strings.Contains(err.Error(), `framework "statemanager-sveltos" of operator "one"`) {
		t.Errorf("it is refused with %v", err)
	}
	if n := w.faults.Count() - before; n > 0 {
		t.Errorf("%d writes", n)
	}
}

func TestR16AProfileOfAFormerNameIsTakenOverAsItIs(t *testing.T) {
	w := onOwn(t)
	chart(w.set, "web", "1.0.0")
	chart(w.set, "shop", "1.0.0")
	w.settleIn(identity.NewContext(t.Context(), w.scoped("one")), w.set)
	was := w.profile(w.set)
	renamed := identity.NewContext(t.Context(), w.scoped("two", "one"))
	drop(w.set, "shop")
	work, err := w.manager.Compute(renamed, w.set)
	if err != nil {
		t.Fatal(err)
	}
	if changes(work) != 1 || !strings.Contains(work.Operations[0].Changes[0].Description, `taken over from ServiceSet`) {
		t.Errorf("the plan is %+v", work.Operations)
	}
	if err := w.manager.CarryOut(renamed, w.set, &work.Operations[0]); err != nil {
		t.Fatal(err)
	}
	if is := w.profile(w.set); is.UID != was.UID || is.Generation != was.Generation || is.Labels[carrier.OwnerLabel] == was.Labels[carrier.OwnerLabel] {
		t.Errorf("it is not as it was: %+v", is.ObjectMeta)
	}
	w.settleIn(renamed, w.set)
	is := w.profile(w.set)
	if is.UID != was.UID || len(is.Spec.HelmCharts) != 1 {
		t.Errorf("the charts are %+v", is.Spec.HelmCharts)
	}
	for _, entry := range is.ManagedFields {
		if strings.Contains(entry.Manager, "_one_") {
			t.Errorf("%s manages fields still", entry.Manager)
		}
	}
}

func TestR17AProfileThatChangedSinceThePlanIsNotDeleted(t *testing.T) {
	w := onOwn(t)
	chart(w.set, "web", "1.0.0")
	w.settle(w.set)
	now := metav1.Now()
	w.set.ServiceSet.DeletionTimestamp = &now
	work, err := w.manager.Compute(t.Context(), w.set)
	if err != nil {
		t.Fatal(err)
	}
	p := w.profile(w.set)
	p.Annotations["example.com/by"] = "somebody"
	if err := w.client.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if err := w.manager.CarryOut(t.Context(), w.set, &work.Operations[0]); !isConflict(err) {
		t.Errorf("the error is %v, want a conflict", err)
	}
	w.profile(w.set)
}
