package inspector_test

import (
	"context"
	"html"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/inspector"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// held is a source whose objects can have finalizers.
type held struct{ *informer.Push }

func (h held) AddFinalizer(_ context.Context, obj any, finalizer string) (any, error) {
	site := obj.(*corev1.ConfigMap)
	site.Finalizers = append(site.Finalizers, finalizer)
	return site, nil
}

func (h held) RemoveFinalizer(context.Context, any, string) error { return nil }

func TestOverviewCountsWhatNoResourceSetHandlesAndObjectsTellWhoseTheyAre(t *testing.T) {
	of := framework.Config{Operator: "site-operator", Source: held{informer.NewPush(kind)}}
	logger := quiet(t)
	set, err := framework.NewResourceSet(framework.ResourceSetConfig{
		Handles:   framework.HandlesLabel("version", "v1"),
		Resources: []framework.Resource{crudOf(t, logger, &pages{written: map[string]*corev1.ConfigMap{}})},
	})
	if err != nil {
		t.Fatal(err)
	}
	of.ResourceRouter, err = framework.NewResourceRouter(framework.ResourceRouterConfig{Logger: logger, ResourceSets: []*framework.ResourceSet{set}})
	if err != nil {
		t.Fatal(err)
	}
	sites := of.Source.(held)
	put := func(s *corev1.ConfigMap) {
		if err := sites.Update(s); err != nil {
			t.Fatal(err)
		}
	}
	handled := site("home")
	handled.Labels = map[string]string{"version": "v1"}
	put(handled)
	w := startFramework(t, inspector.Config{Name: "site-operator", Logger: logger}, of)
	w.reconciled(1)
	lacks(t, w.get("", http.StatusOK), "No resource set handles")

	shown := func(want string) {
		t.Helper()
		operatortest.Eventually(t, want, func() bool { return strings.Contains(w.get("", http.StatusOK), want) })
	}
	put(site("never"))
	shown("No resource set handles 1 object: it is left alone.</p>")
	lost := site("lost")
	lost.Finalizers = []string{"operatorkit.io/v1_site-operator_" + kind}
	put(lost)
	shown("No resource set handles 2 objects: they are left alone. " +
		`<strong class="error">1 of them holds the finalizer of this framework and can't be deleted.</strong>`)

	object := read[inspector.Object](w, objectPath("lost"))
	want := object.Identity
	want.Operator, want.Framework, want.Finalizer = "site-operator", kind, lost.Finalizers[0]
	if object.Identity != want || object.State != "left alone" {
		t.Errorf("it is %s, of %+v, want %+v", object.State, object.Identity, want)
	}
	has(t, w.get(objectPath("lost"), http.StatusOK), "framework sites.example.com of operator site-operator · finalizer <code>"+want.Finalizer+"</code>", "no resource set handles it")
}

// What arrives and can't be used is no outage: the source is in contact, and says what it was.
func TestOverviewTellsWhatASourceCantUse(t *testing.T) {
	w := start(t, inspector.Config{}, []*corev1.ConfigMap{site("home")})
	w.reconciled(1)
	lacks(t, w.get("", http.StatusOK), "Can't be used")
	if err := w.sites.Take(watch.Event{Type: "<ODD>", Object: site("other")}); err == nil {
		t.Fatal("an event of an unknown type is taken")
	}
	const want = `event with type "<ODD>" of source sites.example.com: it must be ADDED, MODIFIED, DELETED or BOOKMARK`
	source := read[inspector.Overview](w, "overview").Frameworks[0].Sources[0]
	if !strings.Contains(source.Unusable, want) || source.Error != "" || !source.Synced {
		t.Errorf("the source is %+v, want it to tell of %s", source, want)
	}
	has(t, w.get("", http.StatusOK), "Can't be used: "+html.EscapeString(want), "Synced")
}
