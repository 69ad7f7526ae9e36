package informer_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestR11AListThatIsOlderThanWhatWasSeenIsAnOutageAndNoState(t *testing.T) {
	instance, namespace := namespaceOf(t)
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)
	changed, gone := named(namespace, "changed"), named(namespace, "gone")
	create(t, c, changed)
	create(t, c, gone)
	lag := operatortest.NewLag()
	earlier := newestVersion(t, c, namespace)
	f := follow(t, configMapConfig(t, operatortest.NewClient(t, lag.Wrap(instance.RESTConfig()), nil), namespace))
	f.await(informer.Added, "changed")
	label(t, c, changed, "newer")
	f.await(informer.Updated, "changed")
	remove(t, c, gone)
	f.await(informer.Deleted, "gone")
	create(t, c, named(namespace, "new"))
	f.await(informer.Added, "new")
	f.stop()
	f.forget()

	lag.Mislead(earlier)
	f.start()
	operatortest.Eventually(t, "the list is refused", func() bool {
		err := f.Status().LastError
		return err != nil && strings.Contains(err.Error(), "seen before")
	})
	if got := f.seen(); len(got) > 0 {
		t.Errorf("events %v of a list that is older than what was seen", got)
	}
	obj, exists, err := f.Get(client.ObjectKeyFromObject(changed))
	if err != nil || !exists || obj.(client.Object).GetLabels()["test"] != "newer" {
		t.Errorf("the store has %v, %t, %v, want the newest state", obj, exists, err)
	}

	lag.Release()
	create(t, c, named(namespace, "later"))
	f.await(informer.Added, "later")
	if err := f.Status().LastError; err != nil {
		t.Errorf("the outage does not end: %v", err)
	}
}

func TestR11ASourceKnowsOfWhatItHasYetToTell(t *testing.T) {
	instance, namespace := namespaceOf(t)
	other := instance.Namespace(t)
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)
	make := func(namespace, name, role string) *corev1.ConfigMap {
		obj := named(namespace, name)
		obj.Labels = map[string]string{"role": role}
		create(t, c, obj)
		return obj
	}
	const page = 500 // one more, so that it takes two
	var last *corev1.ConfigMap
	for i := range page + 1 {
		last = make(namespace, fmt.Sprintf("of-many-%d", i), "primary")
	}
	elsewhere := make(other, "elsewhere", "primary")
	make(namespace, "unselected", "other")
	lag := operatortest.NewLag()
	config := configMapConfig(t, operatortest.NewClient(t, lag.Wrap(instance.RESTConfig()), nil), namespace, other)
	config.LabelSelector = labels.SelectorFromSet(labels.Set{"role": "primary"})
	f := follow(t, config)
	f.await(informer.Added, elsewhere.Name)
	all := func(informer.Key) bool { return true }
	behind := func(of func(informer.Key) bool) map[informer.Key]informer.Lag {
		t.Helper()
		got, err := f.Behind(t.Context(), of)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	operatortest.Eventually(t, "it has told all", func() bool { return len(behind(all)) == 0 })

	lag.Hold(nil)
	label(t, c, last, "newer")
	remove(t, c, elsewhere)
	fresh := make(other, "fresh", "primary")
	key := client.ObjectKeyFromObject
	want := map[informer.Key]informer.Lag{
		key(last):      {UID: last.UID, Version: last.ResourceVersion},
		key(elsewhere): {UID: elsewhere.UID, Gone: true},
		key(fresh):     {UID: fresh.UID, Version: fresh.ResourceVersion},
	}
	if diff := cmp.Diff(want, behind(all)); diff != "" {
		t.Errorf("behind (-want +got):\n%s", diff)
	}
	delete(want, key(last))
	if diff := cmp.Diff(want, behind(func(key informer.Key) bool { return key.Namespace == other })); diff != "" {
		t.Errorf("behind in one namespace (-want +got):\n%s", diff)
	}
	lag.Release()
	operatortest.Eventually(t, "it has told all again", func() bool { return len(behind(all)) == 0 })
}

// A replica that passes a slot on asks whether there are deletions that it has yet to hear of.
func TestADeletionIsYetToBeToldWhileAHandlerIsBusyWithIt(t *testing.T) {
	instance, namespace := namespaceOf(t)
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)
	object := named(namespace, "object")
	create(t, c, object)
	f := follow(t, configMapConfig(t, c, namespace))
	begun, going := make(chan struct{}), make(chan struct{})
	f.Subscribe(func(e informer.Event) {
		if e.Type == informer.Deleted {
			close(begun)
			<-going
		}
	})
	remove(t, c, object)
	<-begun
	answered := make(chan map[informer.Key]informer.Lag)
	go func() {
		behind, err := f.Behind(context.Background(), func(informer.Key) bool { return true })
		if err != nil {
			t.Error(err)
		}
		answered <- behind
	}()
	select {
	case behind := <-answered:
		t.Errorf("it has told all but %v, while a handler is busy with a deletion", behind)
	case <-time.After(500 * time.Millisecond):
		close(going)
		if behind := <-answered; len(behind) > 0 {
			t.Errorf("it has yet to tell of %v after all handlers have returned", behind)
		}
		return
	}
	close(going)
}

func TestR11ASourceKnowsThatItLacksWhatAListLeftOutOrAnEventThatIsLate(t *testing.T) {
	instance, namespace := namespaceOf(t)
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)
	changed, omitted := named(namespace, "changed"), named(namespace, "omitted")
	create(t, c, changed)
	create(t, c, omitted)
	lag := operatortest.NewLag()
	lag.Omit(func(r operatortest.Request) bool { return r.Name == omitted.Name })
	f := follow(t, configMapConfig(t, operatortest.NewClient(t, lag.Wrap(instance.RESTConfig()), nil), namespace))
	wants := func(want bool, when string) {
		t.Helper()
		if want { // wait up to a second for events on their way
			operatortest.Eventually(t, when, func() bool { has, err := f.HasAll(t.Context()); return err == nil && has })
			return
		}
		if has, err := f.HasAll(t.Context()); err != nil || has != want {
			t.Errorf("%s: it has all: %t, %v, want %t", when, has, err, want)
		}
	}
	f.await(informer.Added, changed.Name)
	wants(false, "a list left one out")
	lag.Release()
	wants(true, "the one that was left out has come, or comes within a second")

	lag.Hold(nil)
	label(t, c, changed, "newer")
	wants(false, "the event of a change is held")
	lag.Release()
	wants(true, "the event has come")

	lag.Hold(nil)
	remove(t, c, omitted)
	wants(true, "the event of a deletion is held, and nothing lacks")
}

func TestOnlyNumbersAreOlder(t *testing.T) {
	for _, test := range []struct {
		version, than string
		want          bool
	}{
		{"9", "10", true},
		{"10", "9", false},
		{"10", "10", false},
		{"", "10", false},
		{"10", "", false},
		{"0", "10", false},
		{"abc", "abd", false},
		{"99999999999999999999999", "100000000000000000000000", true},
	} {
		if got := informer.IsOlder(test.version, test.than); got != test.want {
			t.Errorf("%q is older than %q: %t, want %t", test.version, test.than, got, test.want)
		}
	}
}

// newestVersion returns the resource version of a list of ConfigMaps.
func newestVersion(t *testing.T, c client.Client, namespace string) int64 {
	t.Helper()
	list := &corev1.ConfigMapList{}
	if err := c.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	version, err := strconv.ParseInt(list.ResourceVersion, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return version
}
