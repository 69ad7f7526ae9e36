package servicesetresource_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/context/deletionallowedcontext"
	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

func TestTheFinalizerIsKeptAsLongAsThereIsASet(t *testing.T) {
	leaving := setOf("prod")
	leaving.DeletionTimestamp = &metav1.Time{}
	for name, tc := range map[string]struct {
		operations []serviceset.OwnerOperation
		want       bool
	}{
		"no sets":                   {},
		"a set to delete":           {[]serviceset.OwnerOperation{operation(v1alpha1.ServiceSetOperationDelete, setOf("prod"), nil)}, true},
		"a set to empty":            {[]serviceset.OwnerOperation{operation(v1alpha1.ServiceSetOperationUpdate, setOf("prod", entry("a", "1.0.0")), setOf("prod"))}, true},
		"a set that is on its way":  {[]serviceset.OwnerOperation{operation(v1alpha1.ServiceSetOperationNone, leaving, leaving)}, true},
		"a set that can't be told":  {[]serviceset.OwnerOperation{{Err: errors.New("no")}}, true},
		"a set that is not there":   {[]serviceset.OwnerOperation{operation(v1alpha1.ServiceSetOperationCreate, nil, setOf("prod"))}, false},
		"nothing of an owner there": {[]serviceset.OwnerOperation{{Operation: &serviceset.Operation{}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := finalizerskeptcontext.NewContext(t.Context())
			p, err := framework.PlanDelete(ctx, prod(), resources(t, tc.operations...)[:1])
			if err != nil {
				t.Fatal(err)
			}
			if n := p.Counts(); n.Create > 0 {
				t.Errorf("a deletion creates: %s", n)
			}
			// The plan does not hand its signals on: ask the resource itself.
			r := resources(t, tc.operations...)[0].(*framework.TypedCRUDResource[cluster, state])
			desired, err := r.GetDesiredState(ctx, prod())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.NewDeletePatch(ctx, prod(), state{}, desired); err != nil {
				t.Fatal(err)
			}
			if got := finalizerskeptcontext.IsKept(ctx); got != tc.want {
				t.Errorf("kept: %v, want %v", got, tc.want)
			}
		})
	}
}

func TestADeletionThatIsForbiddenDeletesNoSet(t *testing.T) {
	k := newKit(t)
	k.templates(map[string][]string{"a": {"1.0.0"}})
	cd := k.cluster("prod", wanted("a", "1.0.0"))
	k.mustUpdate(cd)
	cd.DeletionTimestamp = &metav1.Time{}
	forbidden := deletionallowedcontext.NewContext(t.Context())
	p, err := framework.PlanDelete(forbidden, cd, k.resources(k.compute))
	if err != nil || p.Counts() != (plan.Counts{}) || p.Resources[0].Skipped == "" {
		t.Errorf("plan = %+v, %v, want one that says why nothing is done", p, err)
	}
	if err := framework.ProcessDelete(forbidden, cd, k.resources(k.compute)); err != nil {
		t.Fatal(err)
	}
	if set, there := k.set("prod"); !there || !slices.Equal(names(set), []string{"a 1.0.0"}) {
		t.Error("the set was deleted")
	}
	if err := framework.ProcessDelete(t.Context(), cd, k.resources(k.compute)); err != nil {
		t.Fatal(err)
	}
	if _, there := k.set("prod"); there {
		t.Error("the set was not deleted")
	}
}

// A set that was replaced by another of its name since, or has changed, may have been given to somebody else.
func TestR17ASetThatIsNotAsItWasSeenIsNotDeleted(t *testing.T) {
	k := newKit(t)
	k.templates(map[string][]string{"a": {"1.0.0"}})
	cd := k.cluster("prod", wanted("a", "1.0.0"))
	k.mustUpdate(cd)
	cd.DeletionTimestamp = &metav1.Time{}
	replaced := k.resources(func(ctx context.Context, cd cluster) ([]serviceset.OwnerOperation, error) {
		operations, err := k.compute(ctx, cd)
		for i := range operations {
			before := operations[i].Operation.Before.DeepCopy()
			before.UID = "another"
			operations[i].Operation.Before = before
		}
		return operations, err
	})
	if err := framework.ProcessDelete(t.Context(), cd, replaced); err == nil {
		t.Error("another set was deleted")
	}
	set, _ := k.set("prod")
	set.Status.ObservedGeneration = 7
	err := framework.ProcessDelete(t.Context(), cd, k.once(func() {
		if err := k.user.Status().Update(t.Context(), set); err != nil {
			t.Fatal(err)
		}
	}))
	if _, there := k.set("prod"); !there || !apierrors.IsConflict(err) {
		t.Errorf("the error is %v, want a conflict", err)
	}
	if err := framework.ProcessDelete(t.Context(), cd, k.resources(k.compute)); err != nil {
		t.Error(err)
	}
	if _, there := k.set("prod"); there {
		t.Error("the set was not deleted")
	}
}
