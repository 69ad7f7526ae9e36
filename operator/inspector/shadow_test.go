package inspector_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/inspector"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// bold are pages of which the next version changes one field.
type bold struct{ *pages }

func (b bold) GetDesiredState(ctx context.Context, site *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	page, err := b.pages.GetDesiredState(ctx, site)
	if err == nil && site.Name == "home" {
		page = page.DeepCopy()
		page.Data["page"] = "BOLD"
	}
	return page, err
}

// crudOf makes a resource of pages.
func crudOf(t testing.TB, logger micrologger.Logger, ops framework.TypedCRUDResourceOps[*corev1.ConfigMap, *corev1.ConfigMap]) framework.Resource {
	t.Helper()
	r, err := framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[*corev1.ConfigMap, *corev1.ConfigMap]{Logger: logger, Ops: ops})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestShadowComparisonIsShown(t *testing.T) {
	logger, written := quiet(t), &pages{written: map[string]*corev1.ConfigMap{}}
	router := framework.ResourceRouterConfig{Logger: logger}
	for _, c := range []framework.ResourceSetConfig{
		{Name: "v1", Resources: []framework.Resource{crudOf(t, logger, written)}},
		{Name: "v2", Shadow: true, Resources: []framework.Resource{crudOf(t, logger, bold{written})}},
	} {
		c.Handles = framework.HandlesType[any]
		set, err := framework.NewResourceSet(c)
		if err != nil {
			t.Fatal(err)
		}
		router.ResourceSets = append(router.ResourceSets, set)
	}
	sets, err := framework.NewResourceRouter(router)
	if err != nil {
		t.Fatal(err)
	}
	sites := informer.NewPush(kind)
	for _, name := range []string{"home", "other"} {
		if err := sites.Update(site(name, "page", "plain")); err != nil {
			t.Fatal(err)
		}
	}
	w := startFramework(t, inspector.Config{Name: "o", Logger: logger}, framework.Config{Source: sites, ResourceRouter: sets})

	operatortest.Eventually(t, "both objects are compared", func() bool {
		shadows := read[inspector.Overview](w, "overview").Frameworks[0].Shadows
		return len(shadows) == 1 && shadows[0].Objects == 2
	})
	has(t, w.get("", http.StatusOK), "v2 would change 1 of 2 objects", "ConfigMap data.page")
	has(t, w.get(objectPath("home"), http.StatusOK), "Shadow v2 beside v1", "BOLD", "default/home-page")
	lacks(t, w.get(objectPath("other"), http.StatusOK), "Shadow v2")
	if got := read[inspector.Object](w, objectPath("home")).Shadows; len(got) != 1 || got[0].Shadow != "v2" {
		t.Errorf("comparisons of the object: %v", got)
	}
}
