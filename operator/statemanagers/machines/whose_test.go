package machines_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/operatorkit/operatorkit/framework/identity"
	machinesv1alpha1 "github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

func scopeOf(operator string, former ...string) *identity.Scope {
	return &identity.Scope{Identity: identity.Identity{Operator: operator, Framework: "statemanager-machines", FormerOperators: former}}
}

func TestR16AnotherOperatorsMachineServiceIsRefusedByName(t *testing.T) {
	w := newWorld(t)
	w.templates(w.set, "web")
	list(w.set, "web=web")
	w.ctx = identity.NewContext(t.Context(), scopeOf("one"))
	w.settle(w.set)
	before := w.faults.Count()
	w.ctx = identity.NewContext(t.Context(), scopeOf("two"))
	work, err := w.manager.Compute(w.ctx, w.set)
	if err != nil {
		t.Fatal(err)
	}
	if len(work.Operations) != 1 || !carrier.IsConflict(work.Operations[0].Err) ||
		!strings.Contains(work.Operations[0].Err.Error(), `framework "statemanager-machines" of operator "one"`) {
		t.Errorf("it is refused with %+v", work.Operations)
	}
	if !strings.Contains(work.Services[0].FailureMessage, `operator "one"`) {
		t.Errorf("the state is %+v", work.Services)
	}
	if n := w.faults.Count() - before; n > 0 {
		t.Errorf("%d writes", n)
	}
}

func TestR16AMachineServiceOfAFormerNameIsTakenOverAsItIs(t *testing.T) {
	w := newWorld(t)
	w.templates(w.set, "web", "next")
	list(w.set, "web=web")
	w.ctx = identity.NewContext(t.Context(), scopeOf("one"))
	w.settle(w.set)
	was := w.service("web")
	list(w.set, "web=next")
	w.ctx = identity.NewContext(t.Context(), scopeOf("two", "one"))
	work := w.reconcile(w.set)
	if changes := work.Operations[0].Changes; len(changes) != 1 || !strings.Contains(changes[0].Description, "taken over from") {
		t.Errorf("the plan is %+v", changes)
	}
	if is := w.service("web"); is.UID != was.UID || is.Generation != was.Generation {
		t.Errorf("it is not as it was: %+v", is)
	}
	w.settle(w.set)
	is := w.service("web")
	if is.UID != was.UID || is.Spec.Container.Image != "next" {
		t.Errorf("it is %+v", is.Spec)
	}
	for _, entry := range is.ManagedFields {
		if strings.Contains(entry.Manager, "_one_") {
			t.Errorf("%s manages fields still", entry.Manager)
		}
	}
}

func TestR17AMachineServiceThatChangedSinceThePlanIsNotDeleted(t *testing.T) {
	w := newWorld(t)
	w.templates(w.set, "web")
	list(w.set, "web=web")
	w.settle(w.set)
	now := metav1.Now()
	w.set.ServiceSet.DeletionTimestamp = &now
	work, err := w.manager.Compute(t.Context(), w.set)
	if err != nil {
		t.Fatal(err)
	}
	w.change("web", func(s *machinesv1alpha1.MachineService) { s.Spec.Container.Image = "another" })
	if err := w.manager.CarryOut(t.Context(), w.set, &work.Operations[0]); !apierrors.IsConflict(err) {
		t.Errorf("the error is %v, want a conflict", err)
	}
	w.service("web")
}
