package servicesetresource_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// What one owner has to mend keeps its own set as it is; the others are written, and then the reconciliation fails, as the
// plan says.
func TestOwnersFailAlone(t *testing.T) {
	for name, c := range map[string]struct {
		// services are those of the owner that has something to mend.
		spec v1alpha1.ServiceSpec
		want string
		// permanent is set when nothing is tried again before something changes.
		permanent bool
	}{
		"a cycle": {
			spec: v1alpha1.ServiceSpec{Services: []service{wanted("a", "1.0.0", "b"), wanted("b", "1.0.0", "a")}},
			want: "services depend on each other: default/a → default/b → default/a", permanent: true,
		},
		"an absent dependency": {
			spec: v1alpha1.ServiceSpec{Services: []service{wanted("a", "1.0.0", "nothing")}},
			want: "service default/a depends on default/nothing, which is not listed", permanent: true,
		},
		"no provider": {
			spec: v1alpha1.ServiceSpec{
				Services: []service{wanted("a", "1.0.0")}, Provider: v1alpha1.StateManagementProviderConfig{Name: "absent"},
			},
			want: "StateManagementProvider absent does not exist: create it", permanent: true,
		},
		"a set of somebody else": {
			spec: v1alpha1.ServiceSpec{Services: []service{wanted("a", "1.0.0")}},
			want: "a-set-of-somebody-else",
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			k.templates(map[string][]string{"a": {"1.0.0"}, "b": {"1.0.0"}, "good": {"1.0.0", "2.0.0"}})
			id := strings.ReplaceAll(name, " ", "-")
			if !c.permanent {
				k.create(&v1alpha1.ServiceSet{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: id}, Spec: v1alpha1.ServiceSetSpec{Cluster: "other"}})
			}
			k.services("base", wanted("good", "1.0.0"))
			cd := clusterOf(k.namespace, id)
			cd.Spec.ServiceSpec = c.spec
			k.create(cd)
			// The first time there is something to write for the good owner, the second time there is nothing.
			for range 2 {
				p, err := framework.PlanUpdate(t.Context(), cd, k.resources(k.compute))
				if err != nil {
					t.Fatal(err)
				}
				told := p.Resources[1].Error
				if p.Outcome != plan.Failed || !strings.Contains(told, c.want) || !slices.ContainsFunc(p.Resources[0].Notes, func(n string) bool {
					return strings.Contains(n, c.want)
				}) {
					t.Errorf("plan = %+v, want a failure and a note with %q", p, c.want)
				}
				err = k.update(cd)
				if err == nil || !strings.Contains(err.Error(), c.want) || framework.IsPermanent(err) != c.permanent {
					t.Errorf("error = %v, permanent: %v, want one with %q", err, framework.IsPermanent(err), c.want)
				}
				for _, set := range k.sets() {
					if set.Spec.MultiClusterService != "" && !slices.Equal(names(&set), []string{"good 1.0.0"}) {
						t.Errorf("the good owner has %v", names(&set))
					}
				}
			}
			if writes := k.writes(); len(writes) != 1 {
				t.Errorf("writes = %v, want that of the good owner", writes)
			}
		})
	}
}

func TestCheckNamesAllThatIsToBeMended(t *testing.T) {
	k := newKit(t)
	contradiction := &serviceset.GraphError{Absent: []serviceset.AbsentDependency{{Service: serviceKey("a"), DependsOn: serviceKey("b")}}}
	missing := fmt.Errorf("no provider: %w", apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource("x").GroupResource(), "native"))
	marked := fmt.Errorf("no provider: %w", framework.Permanent(errors.New("its selector is none")))
	for name, c := range map[string]struct {
		faults    []error
		fails     error
		permanent bool
	}{
		"nothing":                       {},
		"what watches tell of":          {faults: []error{contradiction, nil, missing}, permanent: true},
		"something that no watch tells": {faults: []error{contradiction, errors.New("it is controlled by somebody else")}},
		"one of each, and marked so":    {faults: []error{marked, errors.New("it is controlled by somebody else")}},
		"a failure to read":             {fails: errors.New("no route to host")},
	} {
		t.Run(name, func(t *testing.T) {
			check := k.resources(func(context.Context, cluster) ([]serviceset.OwnerOperation, error) {
				var operations []serviceset.OwnerOperation
				for _, fault := range c.faults {
					operations = append(operations, serviceset.OwnerOperation{Err: fault})
				}
				return operations, c.fails
			})[1]
			for event, ensure := range map[string]func(context.Context, any) error{"update": check.EnsureCreated, "delete": check.EnsureDeleted} {
				err := ensure(t.Context(), &v1alpha1.ClusterDeployment{})
				if framework.IsPermanent(err) != c.permanent {
					t.Errorf("%s: permanent: %v, error %v", event, framework.IsPermanent(err), err)
				}
				want := append([]error{c.fails}, c.faults...)
				want = slices.DeleteFunc(want, func(err error) bool { return err == nil })
				if (err != nil) != (len(want) > 0) {
					t.Errorf("%s: error = %v", event, err)
				}
				for _, fault := range want {
					if !errors.Is(err, fault) || !strings.Contains(err.Error(), fault.Error()) {
						t.Errorf("%s: error = %v, want %v in it", event, err, fault)
					}
				}
			}
		})
	}
}

func TestAFailureToReadIsTriedAgainAndWritesNothing(t *testing.T) {
	k := newKit(t)
	cause := errors.New("no route to host")
	failing := k.resources(func(context.Context, cluster) ([]serviceset.OwnerOperation, error) { return nil, cause })
	cd := k.cluster("prod", wanted("a", "1.0.0"))
	for event, process := range map[string]func(context.Context, any, []framework.Resource) error{
		"update": framework.ProcessUpdate, "delete": framework.ProcessDelete,
	} {
		if err := process(t.Context(), cd, failing); !errors.Is(err, cause) || framework.IsPermanent(err) {
			t.Errorf("%s: error = %v, want %v, and no permanent one", event, err, cause)
		}
	}
}
