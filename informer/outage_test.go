package informer_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestDeletionDuringACutIsSeenWithTheLastState(t *testing.T) {
	instance, namespace := namespaceOf(t)
	w := &wire{}
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)
	gone, changed, same := named(namespace, "gone"), named(namespace, "changed"), named(namespace, "same")
	for _, obj := range []*corev1.ConfigMap{gone, changed, same} {
		create(t, c, obj)
	}
	f := follow(t, configMapConfig(t, operatortest.NewClient(t, w.install(t, instance.RESTConfig()), nil), namespace))

	w.set(true)
	operatortest.Eventually(t, "the outage is reported", func() bool { return f.Status().LastError != nil })
	before := f.Status().LastContact
	label(t, c, gone, "last")
	remove(t, c, gone)
	label(t, c, changed, "new")
	if s := f.Status(); !s.Synced || s.Objects != 3 || !s.LastContact.Equal(before) {
		t.Errorf("status during the outage = %+v, want synced, 3 objects, last contact %s", s, before)
	}
	w.set(false)

	if e := f.await(informer.Deleted, "gone"); e.Object.(client.Object).GetUID() != gone.UID {
		t.Errorf("deleted object has uid %s, want %s", e.Object.(client.Object).GetUID(), gone.UID)
	}
	operatortest.Eventually(t, "the change during the cut is stored", func() bool {
		obj, exists, _ := f.Get(client.ObjectKeyFromObject(changed))
		return exists && obj.(client.Object).GetLabels()["test"] == "new"
	})
	if s := f.Status(); s.LastError != nil || !s.LastContact.After(before) {
		t.Errorf("status after the outage = %+v", s)
	}
}

func TestChangesBetweenTwoRunsAreFoundByComparing(t *testing.T) {
	instance, namespace := namespaceOf(t)
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)
	gone, changed, same, reborn := named(namespace, "gone"), named(namespace, "changed"), named(namespace, "same"), named(namespace, "reborn")
	for _, obj := range []*corev1.ConfigMap{gone, changed, same, reborn} {
		create(t, c, obj)
	}
	f := follow(t, configMapConfig(t, c, namespace))
	f.stop()
	f.forget()

	remove(t, c, gone)
	remove(t, c, reborn)
	create(t, c, named(namespace, "reborn"))
	label(t, c, changed, "new")
	create(t, c, named(namespace, "fresh"))
	f.start()
	end := named(namespace, "zz-end")
	operatortest.Eventually(t, "the store has what is there", func() bool {
		_, exists, _ := f.Get(informer.Key{Namespace: namespace, Name: "fresh"})
		return exists
	})
	create(t, c, end)
	operatortest.Eventually(t, "the watch goes on", func() bool {
		_, exists, _ := f.Get(client.ObjectKeyFromObject(end))
		return exists
	})

	want := []string{
		"added fresh backlog=false",
		"added reborn backlog=false",
		"added zz-end backlog=false",
		"deleted gone backlog=false",
		"deleted reborn backlog=false",
		"updated changed backlog=false",
	}
	// An object is in the store before its event is delivered.
	operatortest.Eventually(t, "the last event", func() bool { return slices.Contains(f.seen(), "added zz-end backlog=false") })
	got := f.seen()
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events of the second run (-want +got):\n%s", diff)
	}
}

// TestRestartOfTheServerLosesNoKey kills the API server and etcd under a running source, and
// changes objects once they are back.
func TestRestartOfTheServerLosesNoKey(t *testing.T) {
	instance := operatortest.Start(t, operatortest.Dedicated())
	namespace := instance.Namespace(t)
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)
	const objects = 50
	for i := range objects {
		create(t, c, named(namespace, fmt.Sprint("old-", i)))
	}
	f := follow(t, configMapConfig(t, operatortest.NewClient(t, instance.RESTConfig(), nil), namespace))
	if got := f.Status().Objects; got != objects {
		t.Fatalf("%d objects before the kill, want %d", got, objects)
	}

	if err := instance.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	if err := instance.KillEtcd(); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the outage is reported", func() bool { return f.Status().LastError != nil })
	if err := instance.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	fresh := operatortest.NewClient(t, instance.RESTConfig(), nil)
	want := []string{}
	for i := range objects {
		switch i % 3 {
		case 0:
			remove(t, fresh, named(namespace, fmt.Sprint("old-", i)))
		case 1:
			label(t, fresh, named(namespace, fmt.Sprint("old-", i)), "changed")
			want = append(want, fmt.Sprint("old-", i, "=changed"))
		default:
			want = append(want, fmt.Sprint("old-", i, "="))
		}
		create(t, fresh, named(namespace, fmt.Sprint("new-", i)))
		want = append(want, fmt.Sprint("new-", i, "="))
	}
	slices.Sort(want)

	var got []string
	operatortest.Eventually(t, "the store holds what the server holds", func() bool {
		got = got[:0]
		for _, obj := range f.List() {
			o := obj.(metav1.Object)
			got = append(got, fmt.Sprint(o.GetName(), "=", o.GetLabels()["test"]))
		}
		slices.Sort(got)
		return slices.Equal(want, got)
	})
	deleted := map[string]int{}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.events {
		if e.Type == informer.Deleted {
			deleted[e.Key.Name]++
		}
	}
	for i := 0; i < objects; i += 3 {
		if n := deleted[fmt.Sprint("old-", i)]; n != 1 {
			t.Errorf("old-%d was deleted %d times", i, n)
		}
	}
}
