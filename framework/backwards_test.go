package framework_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// ordered notes when it runs, and plans a change.
type ordered struct {
	resource
}

func newOrdered(name string, heard *journal) *ordered {
	note := func(event string) func(context.Context, any) error {
		return func(context.Context, any) error { heard.add(event + " " + name); return nil }
	}
	return &ordered{resource{name: name, created: note("create"), deleted: note("delete")}}
}

func (r *ordered) Plan(_ context.Context, event plan.Event, _ any) ([]plan.Change, error) {
	return []plan.Change{{Action: plan.Update, Description: string(event) + " " + r.name}}, nil
}

func TestDeletionsRunBackwardsWhereTheSetSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, heard, last := informer.NewPush("objects"), &journal{}, newConcluding(nil)
		resources := []framework.Resource{newOrdered("network", heard), newOrdered("disk", heard), newOrdered("server", heard), last}
		shadow := []framework.Resource{newOrdered("network", heard), newOrdered("disk", heard), newOrdered("server", heard)}
		observed := &records{}
		f := newFramework(t, framework.Config{
			Source: source, Observer: observed,
			ResourceRouter: routerOf(t,
				framework.ResourceSetConfig{Resources: resources, DeleteBackwards: true},
				framework.ResourceSetConfig{Name: "next", Shadow: true, Resources: shadow, DeleteBackwards: true}),
		})
		defer running(t, f)()
		put(t, source, configMap("a"))
		synctest.Wait()
		gone := configMap("b")
		gone.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		for _, obj := range []any{configMap("b"), gone} {
			p, err := f.PlanObject(t.Context(), obj)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range p.Resources {
				heard.add("plan " + r.Name)
			}
		}
		comparisons, err := f.PlanObjectShadows(t.Context(), gone)
		if err != nil || len(comparisons) != 1 {
			t.Fatalf("got comparisons %v and %v", comparisons, err)
		}
		remove(t, source, configMap("a"))
		synctest.Wait()
		want := []string{
			"create network", "create disk", "create server",
			"plan network", "plan disk", "plan server", "plan conclusion",
			"plan server", "plan disk", "plan network", "plan conclusion",
			"delete server", "delete disk", "delete network",
		}
		if diff := cmp.Diff(want, heard.all()); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
		var recorded []string
		for _, record := range observed.taken() {
			for _, r := range record.Resources {
				recorded = append(recorded, r.Name)
			}
		}
		want = []string{"network", "disk", "server", "conclusion", "server", "disk", "network", "conclusion"}
		if diff := cmp.Diff(want, recorded); diff != "" {
			t.Errorf("records (-want +got):\n%s", diff)
		}
		if heard := last.heard.all(); len(heard) < 2 {
			t.Errorf("the conclusion heard %q", heard)
		}
	})
}
