package informer_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestWatchSendsEventsAndClosesItsChannels(t *testing.T) {
	instance, namespace := namespaceOf(t)
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)
	w := &wire{}
	source, err := informer.NewKubernetes(configMapConfig(t, operatortest.NewClient(t, w.install(t, instance.RESTConfig()), nil), namespace))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	deletes, updates, failures := source.Watch(ctx)
	take := func(from <-chan watch.Event, want watch.EventType) *corev1.ConfigMap {
		t.Helper()
		select {
		case e, ok := <-from:
			if !ok || e.Type != want {
				t.Fatalf("event %v, open %t; want %s", e.Type, ok, want)
			}
			return e.Object.(*corev1.ConfigMap)
		case <-time.After(patience):
			t.Fatalf("no event %s came", want)
		}
		return nil
	}

	obj := named(namespace, "x")
	create(t, c, obj)
	got := take(updates, watch.Added)
	got.Data["key"] = "spoiled"
	if mine := stored(t, source, obj).(*corev1.ConfigMap); mine.Data["key"] == "spoiled" {
		t.Error("the receiver shares its object with the store")
	}

	// Nobody reads meanwhile, and the many changes become one.
	for i := range 20 {
		label(t, c, obj, fmt.Sprint(i))
	}
	operatortest.Eventually(t, "the last change is stored", func() bool {
		return stored(t, source, obj).(client.Object).GetLabels()["test"] == "19"
	})
	count := 0
	for latest := ""; latest != "19"; count++ {
		latest = take(updates, watch.Modified).Labels["test"]
	}
	if count > 3 {
		t.Errorf("%d events for 20 changes that nobody took", count)
	}

	remove(t, c, obj)
	if last := take(deletes, watch.Deleted); last.Labels["test"] != "19" {
		t.Errorf("the last state has labels %v", last.Labels)
	}

	w.set(true)
	select {
	case err := <-failures:
		if err == nil {
			t.Error("a nil error was sent")
		}
	case <-time.After(patience):
		t.Fatal("the outage was not reported")
	}

	cancel()
	for range deletes {
		t.Error("a deletion that did not happen")
	}
	for range updates {
		t.Error("an update that did not happen")
	}
	for range failures {
		// The error of a later attempt may still be there.
	}
}

func TestWatchNeverMissesADeletionThatWaits(t *testing.T) {
	instance, namespace := namespaceOf(t)
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)
	source, err := informer.NewKubernetes(configMapConfig(t, c, namespace))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	deletes, updates, failures := source.Watch(ctx)
	if err := source.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	known := named(namespace, "known")
	create(t, c, known)
	<-updates
	// While the channels are not read, a known object is replaced, and another one is created,
	// deleted and recreated.
	create(t, c, named(namespace, "first"))
	remove(t, c, known)
	known = named(namespace, "known")
	create(t, c, known)
	for range 2 {
		obj := named(namespace, "x")
		create(t, c, obj)
		remove(t, c, obj)
	}
	last := named(namespace, "x")
	create(t, c, last)
	create(t, c, named(namespace, "end"))
	operatortest.Eventually(t, "all is stored", func() bool { return source.Status().Objects == 4 })

	existing := map[string]string{}
	deleted := 0
	for existing["end"] == "" {
		select {
		case e := <-deletes:
			delete(existing, e.Object.(client.Object).GetName())
			deleted++
		case e := <-updates:
			existing[e.Object.(client.Object).GetName()] = string(e.Object.(client.Object).GetUID())
		case <-time.After(patience):
			t.Fatalf("events are missing, known are %v", existing)
		}
	}
	if existing["x"] != string(last.UID) || existing["known"] != string(known.UID) || deleted != 3 {
		t.Errorf("%v after %d deletions, want x %s and known %s after 3", existing, deleted, last.UID, known.UID)
	}
	cancel()
	for range deletes {
	}
	for range updates {
	}
	for range failures {
	}
}

// garbled is a client that spoils the events of its watches by the names of their objects.
type garbled struct{ client.WithWatch }

func (g garbled) Watch(ctx context.Context, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
	w, err := g.WithWatch.Watch(ctx, list, opts...)
	if err != nil {
		return nil, err
	}
	return watch.Filter(w, func(e watch.Event) (watch.Event, bool) {
		o, ok := e.Object.(client.Object)
		switch {
		case !ok:
		case strings.HasPrefix(o.GetName(), "type"):
			e.Type = "STRANGE"
		case strings.HasPrefix(o.GetName(), "nil"):
			e.Object = nil
		case strings.HasPrefix(o.GetName(), "status"):
			e.Object = &metav1.Status{}
		}
		return e, true
	}), nil
}

func TestWhatAWatchBringsAndCantBeUsedIsToldOnce(t *testing.T) {
	instance, namespace := namespaceOf(t)
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)
	config := configMapConfig(t, garbled{c}, namespace)
	logger, log := newLogger(t)
	config.Logger = logger
	source, err := informer.NewKubernetes(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	deletions, updates, errs := source.Watch(ctx)
	defer func() {
		cancel()
		for range updates { // until the source has ended
		}
		for range deletions {
		}
	}()
	if err := source.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	sorts := []string{"STRANGE", "<nil>", "Status"}
	for i, name := range []string{"type", "nil", "status"} {
		for n := range 2 {
			create(t, c, named(namespace, fmt.Sprintf("%s-%d", name, n)))
		}
		if err := <-errs; !strings.Contains(err.Error(), sorts[i]) {
			t.Errorf("the error channel tells %v, want %s", err, sorts[i])
		}
	}
	create(t, c, named(namespace, "good"))
	if e := <-updates; e.Object.(client.Object).GetName() != "good" {
		t.Errorf("got %v, want only what can be used", e.Object)
	}
	if told := source.Status().Unusable; told == nil || !strings.Contains(told.Error(), "Status") {
		t.Errorf("the status tells %v, want what came last", told)
	}
	if got := strings.Count(log.String(), "can't be used"); got != 3 {
		t.Errorf("%d messages, want one for each sort:\n%s", got, log)
	}
	if err := source.Status().LastError; err != nil {
		t.Errorf("what can't be used is no outage, got %v", err)
	}
}
