package framework_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

// paintedPages are the pages of a version of an operator, whose writes are counted.
type paintedPages struct {
	writes *operatortest.Faults
	color  func(primary *corev1.ConfigMap) string
}

func (p *paintedPages) resource(t *testing.T, instance *operatortest.Instance, children objectresource.Store) framework.Resource {
	t.Helper()
	p.writes = operatortest.NewFaults(operatortest.Uncounted())
	c := operatortest.NewClient(t, p.writes.Wrap(instance.RESTConfig()), nil)
	r, err := objectresource.New(objectresource.Config[*corev1.ConfigMap]{
		Name: "pages", Client: c, Logger: quiet(t), Stores: []objectresource.Store{children},
		Desired: func(_ context.Context, primary *corev1.ConfigMap) ([]client.Object, error) {
			return []client.Object{&corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: primary.Namespace, Name: primary.Name + "-page"},
				Data:       map[string]string{"title": "Page of " + primary.Name, "color": p.color(primary)},
			}}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestShadowThatChangesOneFieldIn3Of200ObjectsIsReportedExactlySoAndWritesNothing(t *testing.T) {
	const objects = 200
	instance := operatortest.Start(t)
	c := newCluster(t, instance)
	for n := range objects {
		primary := c.object(fmt.Sprintf("o%03d", n))
		if n%70 == 10 { // three of them
			primary.Data = map[string]string{"theme": "spring"}
		}
		c.create(primary)
	}
	children, err := informer.NewKubernetes(informer.KubernetesConfig{
		Client: c, Object: &corev1.ConfigMap{}, Name: "children", Namespaces: []string{c.namespace}, Logger: quiet(t),
		Indexers: objectresource.OwnerIndexers(),
	})
	if err != nil {
		t.Fatal(err)
	}
	v1 := &paintedPages{color: func(*corev1.ConfigMap) string { return "blue" }}
	v2 := &paintedPages{color: func(primary *corev1.ConfigMap) string {
		if primary.Data["theme"] == "spring" {
			return "green"
		}
		return "blue"
	}}
	f := newFramework(t, framework.Config{
		Name: "websites", Source: c.source(), DisableFinalizer: true,
		Watches: []framework.Watch{{Source: children, Map: objectresource.OwnerMap(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}.GroupKind())}},
		ResourceRouter: routerOf(t,
			framework.ResourceSetConfig{Name: "v1", Resources: []framework.Resource{v1.resource(t, instance, children)}},
			framework.ResourceSetConfig{Name: "v2", Shadow: true, Resources: []framework.Resource{v2.resource(t, instance, children)}}),
	})
	running(t, f)
	want := []plan.ShadowSummary{{
		Framework: "websites", Shadow: "v2", Objects: objects, Differing: 3,
		Places: []plan.PlaceCount{{Place: plan.Place{Resource: "pages", Kind: "ConfigMap", Path: "data.color"}, Objects: 3}},
	}}
	// A page that comes back from the server has its primary compared once more, which waits for its turn.
	operatortest.Eventually(t, "all objects are compared", func() error {
		if diff := cmp.Diff(want, f.Shadows()); diff != "" {
			return fmt.Errorf("shadows (-want +got):\n%s", diff)
		}
		return nil
	})
	lines := []string{
		"shadow: update ConfigMap " + c.namespace + `/o010-page: data.color: "blue" -> "green"`,
		"shadow: update ConfigMap " + c.namespace + `/o080-page: data.color: "blue" -> "green"`,
		"shadow: update ConfigMap " + c.namespace + `/o150-page: data.color: "blue" -> "green"`,
	}
	operatortest.Eventually(t, "the differences are those of the pages that there are", func() error {
		var got []string
		for _, o := range f.ShadowObjects("v2") {
			got = append(got, differences(o.Comparison)...)
		}
		if diff := cmp.Diff(lines, got); diff != "" {
			return fmt.Errorf("differences (-want +got):\n%s", diff)
		}
		return nil
	})
	if n := v1.writes.Count(); n != objects {
		t.Errorf("the active set wrote %d times, want once for each of %d objects", n, objects)
	}
	for _, w := range v2.writes.Writes() {
		t.Errorf("the shadow wrote: %s", w)
	}
}

// differences are the fields that only the shadow would change, and a line for each change of the active set.
func differences(c *plan.Comparison) []string {
	var lines []string
	for _, d := range c.Differences {
		if d.Active != nil {
			lines = append(lines, fmt.Sprintf("active: %s %s", d.Active.Action, d.Object))
		}
		if d.Shadow == nil {
			continue
		}
		for _, f := range d.Shadow.Fields {
			lines = append(lines, fmt.Sprintf("shadow: %s %s: %s", d.Shadow.Action, d.Object, f))
		}
	}
	return lines
}
