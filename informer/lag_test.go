package informer_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

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

func TestR11AListOfWhatLivesHasAllThatIsSelectedAndIsNotBelievedWhenItIsOld(t *testing.T) {
	instance, namespace := namespaceOf(t)
	other := instance.Namespace(t)
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)
	want := map[client.ObjectKey]bool{}
	const page = 500 // one more, so that it takes two
	for i := range page + 1 {
		obj := named(namespace, fmt.Sprintf("of-many-%d", i))
		obj.Labels = map[string]string{"role": "primary"}
		create(t, c, obj)
		want[client.ObjectKeyFromObject(obj)] = true
	}
	elsewhere, unselected := named(other, "elsewhere"), named(namespace, "unselected")
	elsewhere.Labels = map[string]string{"role": "primary"}
	create(t, c, elsewhere)
	create(t, c, unselected)
	want[client.ObjectKeyFromObject(elsewhere)] = true
	lag := operatortest.NewLag()
	config := configMapConfig(t, operatortest.NewClient(t, lag.Wrap(instance.RESTConfig()), nil), namespace, other)
	config.LabelSelector = labels.SelectorFromSet(labels.Set{"role": "primary"})
	source, err := informer.NewKubernetes(config)
	if err != nil {
		t.Fatal(err)
	}
	listed := func() (map[client.ObjectKey]bool, error) {
		got := map[client.ObjectKey]bool{}
		return got, source.ListLive(t.Context(), func(key informer.Key, obj any) {
			got[key] = obj.(client.Object).GetUID() != "" && obj.(client.Object).GetResourceVersion() != ""
		})
	}
	got, err := listed()
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, listed (-want +got):\n%s", err, diff)
	}
	earlier := newestVersion(t, c, namespace)
	remove(t, c, elsewhere)
	lag.Mislead(earlier)
	if got, err := listed(); err == nil || !strings.Contains(err.Error(), "older than an answer before it") {
		t.Errorf("%d objects and %v of an old list", len(got), err)
	}
	lag.Release()
	delete(want, client.ObjectKeyFromObject(elsewhere))
	got, err = listed()
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, listed (-want +got):\n%s", err, diff)
	}
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
		if want { // what is on its way is waited for, for a second
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
	lag.Mislead(newestVersion(t, c, namespace) - 1)
	if has, err := f.HasAll(t.Context()); err == nil || has {
		t.Errorf("it has all: %t, %v, of an old list", has, err)
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
