package operator_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/internal/record"
	"github.com/operatorkit/operatorkit/operator/internal/upgrade"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/objectresource"
	"github.com/operatorkit/operatorkit/resource/statusresource"
)

const siteCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: sites.upgrade.test.operatorkit.io
spec:
  group: upgrade.test.operatorkit.io
  scope: Namespaced
  names: {plural: sites, singular: site, kind: Site, listKind: SiteList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              user: {type: string}
          status:
            type: object
            x-kubernetes-preserve-unknown-fields: true
            properties:
              observedGeneration: {type: integer, format: int64}
              conditions:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [type]
                items:
                  type: object
                  x-kubernetes-preserve-unknown-fields: true
                  required: [type]
                  properties: {type: {type: string}}
`

func site(namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "upgrade.test.operatorkit.io", Version: "v1", Kind: "Site"})
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// fleet is a number of Sites, each with a page that an operator makes. A Site with a broken page is
// not ready.
type fleet struct {
	t         *testing.T
	client    client.WithWatch
	instance  *operatortest.Instance
	namespace string
	// namespaces are those with sites.
	namespaces []string
	names      []string

	// broken are the texts with which a page is never ready.
	broken map[string]bool
	// most is the largest number of places at once.
	most int
}

func newFleet(t *testing.T, sites int) *fleet {
	t.Helper()
	instance := operatortest.Start(t)
	crds, err := operator.ReadCRDs(fstest.MapFS{"sites.yaml": {Data: []byte(siteCRD)}})
	if err != nil {
		t.Fatal(err)
	}
	instance.InstallCRDs(t, crds...)
	f := &fleet{t: t, instance: instance, namespace: instance.Namespace(t), broken: map[string]bool{"broken": true}}
	f.client = operatortest.NewClient(t, instance.RESTConfig(), nil)
	for i := range sites {
		f.add(fmt.Sprintf("site-%02d", i), nil)
	}
	return f
}

func (f *fleet) add(name string, labels map[string]string) {
	f.t.Helper()
	f.addIn(f.namespace, name, labels)
}

func (f *fleet) addIn(namespace, name string, labels map[string]string) {
	f.t.Helper()
	if !slices.Contains(f.namespaces, namespace) {
		f.namespaces = append(f.namespaces, namespace)
	}
	object := site(namespace, name)
	object.Object["spec"] = map[string]any{"user": ""}
	object.SetLabels(labels)
	if err := f.client.Create(f.t.Context(), object); err != nil {
		f.t.Fatal(err)
	}
	f.names = append(f.names, name)
}

// build is a build of the operator of a fleet.
type build struct {
	name string
	// text is the text of a page, before what the user of the site adds.
	text string
	// further are resources before the page.
	further []framework.Resource
	// refuses says for which sites the page can't be computed. Default: for none.
	refuses  func(object *unstructured.Unstructured) bool
	upgrade  operator.UpgradeConfig
	election operator.LeaderElectionConfig
	sharding bool
	policy   framework.Policy
	guards   []framework.Guard
	// config is the API server's. Default: that of the fleet.
	config *rest.Config
	// registry is for the metrics. Default: that of the Dependencies.
	registry *prometheus.Registry
	// namespaces are the namespaces of the sites. Default: that of the fleet.
	namespaces []string
	log        *journal
}

// run runs a build.
func (f *fleet) run(b build) *running {
	f.t.Helper()
	return run(f.t, f.operator(b))
}

func (f *fleet) operator(b build) *operator.Operator {
	f.t.Helper()
	o, closeAll, err := f.build(b)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(closeAll)
	return o
}

func (f *fleet) build(b build) (o *operator.Operator, closeAll func(), err error) {
	if b.config == nil {
		b.config = f.instance.RESTConfig()
	}
	logger := quiet(f.t)
	if b.log != nil {
		logger = logTo(f.t, b.log)
	}
	if b.namespaces == nil {
		b.namespaces = []string{f.namespace}
	}
	deps, err := operator.NewDependencies(operator.DependenciesConfig{
		Name: "fleet", RESTConfig: b.config, Scheme: f.client.Scheme(), Logger: logger, Namespaces: b.namespaces, Guards: b.guards,
	})
	if err != nil {
		return nil, nil, err
	}
	source, err := deps.NewSource(site("", ""))
	if err != nil {
		return nil, nil, err
	}
	pages, err := objectresource.New(objectresource.Config[*unstructured.Unstructured]{
		Name: "pages", Client: deps.Client, Logger: logger, Kinds: []client.Object{&corev1.ConfigMap{}},
		Desired: func(_ context.Context, object *unstructured.Unstructured) ([]client.Object, error) {
			if b.refuses != nil && b.refuses(object) {
				return nil, errors.New("out of order")
			}
			page := configMap(object.GetNamespace(), object.GetName()+"-page")
			user, _, _ := unstructured.NestedString(object.Object, "spec", "user")
			page.Data = map[string]string{"text": b.text + user}
			return []client.Object{page}, nil
		},
	})
	if err != nil {
		return nil, nil, err
	}
	status, err := statusresource.New(statusresource.Config[*unstructured.Unstructured]{
		Client: deps.Client, Logger: logger,
		Set: func(_ context.Context, object *unstructured.Unstructured, report *statusresource.Report) error {
			if f.broken[f.pageIn(object.GetNamespace(), object.GetName())] {
				report.Reconciling("Broken", "the page is broken")
			}
			return unstructured.SetNestedField(object.Object, b.name, "status", "build")
		},
	})
	if err != nil {
		return nil, nil, err
	}
	sites, err := deps.NewFramework(framework.Config{
		Name: "sites", Source: source, Resources: append(b.further, pages, status),
		BackOffFactory: func() backoff.BackOff { return backoff.NewConstantBackOff(50 * time.Millisecond) },
	})
	if err != nil {
		return nil, nil, err
	}
	if b.policy != nil {
		sites.Require(b.policy)
	}
	b.upgrade.Build = b.name
	if b.upgrade.MinReady == 0 {
		b.upgrade.MinReady = 20 * time.Millisecond
	}
	o, err = operator.New(operator.Config{
		Name: "fleet", Logger: logger, RESTConfig: deps.RESTConfig, Registry: b.registry, Frameworks: []*framework.Framework{sites},
		LeaderElection: b.election, Sharding: operator.ShardingConfig{Enabled: b.sharding},
		Upgrade: b.upgrade, StateNamespace: cmp.Or(f.namespace, b.namespaces[0]),
	})
	return o, deps.Close, err
}

func (f *fleet) page(name string) string { return f.pageIn(f.namespace, name) }

func (f *fleet) pageIn(namespace, name string) string {
	page := configMap(namespace, name+"-page")
	if err := f.client.Get(context.Background(), client.ObjectKeyFromObject(page), page); err != nil {
		return ""
	}
	return page.Data["text"]
}

// pages returns the number of pages with each text.
func (f *fleet) pages() map[string]int {
	texts := map[string]int{}
	list := &corev1.ConfigMapList{}
	if err := f.client.List(context.Background(), list); err != nil {
		f.t.Error(err)
	}
	for _, item := range list.Items {
		if slices.Contains(f.namespaces, item.Namespace) && strings.HasSuffix(item.Name, "-page") {
			texts[item.Data["text"]]++
		}
	}
	return texts
}

// site returns a site as it is.
func (f *fleet) site(name string) *unstructured.Unstructured {
	f.t.Helper()
	object := site(f.namespace, name)
	if err := f.client.Get(f.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		f.t.Fatal(err)
	}
	return object
}

// patch changes a site.
func (f *fleet) patch(name, patch string) {
	f.t.Helper()
	if err := f.client.Patch(f.t.Context(), site(f.namespace, name), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		f.t.Fatal(err)
	}
}

// state returns the state of the upgrade.
func (f *fleet) state() (s upgrade.State) {
	stored := configMap(f.namespace, operator.StateName("fleet", ""))
	if err := f.client.Get(context.Background(), client.ObjectKeyFromObject(stored), stored); err != nil {
		return s
	}
	if err := json.Unmarshal([]byte(stored.Data["upgrade"]), &s); err != nil {
		f.t.Error(err)
	}
	return s
}

// phase waits for a phase of the upgrade to a build.
func (f *fleet) phase(to string, phase upgrade.Phase) upgrade.State {
	f.t.Helper()
	var s upgrade.State
	operatortest.Eventually(f.t, fmt.Sprintf("the upgrade to %s is %s", to, phase), func() error {
		s = f.state()
		f.most = max(f.most, len(s.Places))
		if s.To.ID != to || s.Phase != phase {
			return fmt.Errorf("it is %s to %s, places %v, reports %v", s.Phase, s.To, s.Places, s.Reports)
		}
		return nil
	})
	return s
}

func (f *fleet) want(pages map[string]int) {
	f.t.Helper()
	operatortest.Eventually(f.t, fmt.Sprintf("pages %v", pages), func() error {
		if got := f.pages(); fmt.Sprint(got) != fmt.Sprint(pages) {
			return fmt.Errorf("got %v", got)
		}
		return nil
	})
}

// started runs a first build until its upgrade is finished, and stops it.
func (f *fleet) started(limits operator.UpgradeConfig) build {
	f.t.Helper()
	first := build{name: "one", text: "fine", upgrade: limits}
	running := f.run(first)
	f.phase("one", upgrade.Finished)
	f.want(map[string]int{"fine": len(f.names)})
	f.end(running)
	f.most = 0
	return first
}

func (f *fleet) end(r *running) {
	f.t.Helper()
	if err := r.stop(); err != nil {
		f.t.Fatal(err)
	}
}

// touch makes all sites be reconciled again.
func (f *fleet) touch() {
	f.t.Helper()
	for _, name := range f.names {
		f.patch(name, `{"metadata":{"annotations":{"touched":"`+time.Now().String()+`"}}}`)
	}
}

// held returns the names of the sites without a place.
func (f *fleet) held() (names []string) {
	s := f.state()
	for _, name := range f.names {
		if !slices.ContainsFunc(s.Places, func(p upgrade.Place) bool { return p.Name == name }) {
			names = append(names, name)
		}
	}
	return names
}

func TestAnUpgradeThatBreaksObjectsHaltsAndTheFormerBuildBringsThemBack(t *testing.T) {
	f := newFleet(t, 20)
	limits := operator.UpgradeConfig{Budget: "3", ProgressDeadline: time.Second}
	first := f.started(limits)

	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "fleet"}}
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "fleet"}}
	deployment.Spec.Template.Labels = deployment.Spec.Selector.MatchLabels
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "operator", Image: "fleet:two"}}
	if err := f.client.Create(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	log, registry := &journal{}, prometheus.NewRegistry()
	second := build{name: "two", text: "broken", upgrade: limits, log: log, registry: registry}
	running := f.run(second)
	s := f.phase("two", upgrade.Halted)
	f.event("fleet", operator.ReasonUpgradeHalted)
	operatortest.Eventually(t, "the metrics say so", func() error {
		return testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP operatorkit_operator_upgrade_halted Whether the upgrade is halted after failures: 1 or 0.
# TYPE operatorkit_operator_upgrade_halted gauge
operatorkit_operator_upgrade_halted{operator="fleet"} 1
# HELP operatorkit_operator_upgrade_held_objects Objects that wait for a place, by the last reports of the replicas.
# TYPE operatorkit_operator_upgrade_held_objects gauge
operatorkit_operator_upgrade_held_objects{operator="fleet"} 17
# HELP operatorkit_operator_upgrade_places_used Objects that the upgrade has admitted and that are not ready yet.
# TYPE operatorkit_operator_upgrade_places_used gauge
operatorkit_operator_upgrade_places_used{operator="fleet"} 3
# HELP operatorkit_operator_upgrade_running Whether an upgrade is under way: 1 until it is finished, also while it is paused or halted.
# TYPE operatorkit_operator_upgrade_running gauge
operatorkit_operator_upgrade_running{operator="fleet"} 1
`), "operatorkit_operator_upgrade_halted", "operatorkit_operator_upgrade_held_objects", "operatorkit_operator_upgrade_places_used", "operatorkit_operator_upgrade_running")
	})
	if s.From.ID != "one" || len(s.Places) != 3 || s.Failures == 0 {
		t.Errorf("state %+v", s)
	}
	f.want(map[string]int{"fine": 17, "broken": 3})
	if !log.contains("upgrade Halted") {
		t.Error("the log does not say that the upgrade is halted")
	}
	f.event(s.Places[0].Name, operator.ReasonUpgradeFailed)
	// What is held is as the former build has left it, and ready.
	held := f.held()
	if text := fmt.Sprint(f.site(held[0]).Object["status"]); !strings.Contains(text, "build:one") || !strings.Contains(text, "status:True type:Ready") {
		t.Errorf("status of a held site: %s", text)
	}
	// The state comes back if somebody deletes it.
	if err := f.client.Delete(t.Context(), configMap(f.namespace, operator.StateName("fleet", ""))); err != nil {
		t.Fatal(err)
	}
	if again := f.phase("two", upgrade.Halted); len(again.Places) != len(s.Places) {
		t.Errorf("the places were %v and are %v", s.Places, again.Places)
	}
	f.end(running)

	// Another process of the build stays halted.
	second.registry = nil
	running = f.run(second)
	f.touch()
	f.want(map[string]int{"fine": 17, "broken": 3})
	// Changes by users, new objects and deletions go through.
	f.patch(held[0], `{"spec":{"user":"!"}}`)
	f.add("site-new", nil)
	if err := f.client.Delete(t.Context(), site(f.namespace, held[1])); err != nil {
		t.Fatal(err)
	}
	f.names = slices.DeleteFunc(f.names, func(name string) bool { return name == held[1] })
	f.want(map[string]int{"fine": 15, "broken": 4, "broken!": 1})
	if s := f.phase("two", upgrade.Halted); len(s.Places) != 3 {
		t.Errorf("state %+v", s)
	}
	f.end(running)

	running = f.run(first)
	f.phase("one", upgrade.Finished)
	f.want(map[string]int{"fine": 19, "fine!": 1})
	f.end(running)
	if f.most > 3 {
		t.Errorf("%d objects had places at once", f.most)
	}
}

// event waits for an event on a site.
func (f *fleet) event(name, reason string) {
	f.t.Helper()
	operatortest.Eventually(f.t, "the event "+reason+" on "+name, func() error {
		events := &corev1.EventList{}
		if err := f.client.List(f.t.Context(), events, client.InNamespace(f.namespace)); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Reason == reason && e.InvolvedObject.Name == name {
				return nil
			}
		}
		return fmt.Errorf("%d events", len(events.Items))
	})
}

func TestABuildThatChangesNothingTakesNoPlace(t *testing.T) {
	f := newFleet(t, 20)
	f.started(operator.UpgradeConfig{Budget: "1"})
	computed := map[string]int{}
	var mu sync.Mutex
	running := f.run(build{name: "two", text: "fine", upgrade: operator.UpgradeConfig{Budget: "1"}, refuses: func(object *unstructured.Unstructured) bool {
		mu.Lock()
		defer mu.Unlock()
		computed[object.GetName()]++
		return false
	}})
	if s := f.phase("two", upgrade.Finished); s.Done != 0 || f.most != 0 {
		t.Errorf("state %+v; %d objects had places at once", s, f.most)
	}
	f.end(running)
	for name, times := range computed {
		if times != 1 {
			t.Errorf("%s was reconciled %d times", name, times)
		}
	}
}

func TestObjectsGetPlacesInTurnUntilAllAreDone(t *testing.T) {
	f := newFleet(t, 20)
	f.started(operator.UpgradeConfig{Budget: "2"})
	running := f.run(build{name: "two", text: "new", upgrade: operator.UpgradeConfig{Budget: "10%"}})
	if s := f.phase("two", upgrade.Finished); s.Done != 20 || f.most != 2 {
		t.Errorf("state %+v; %d objects had places at once", s, f.most)
	}
	f.want(map[string]int{"new": 20})
	f.end(running)
}

func TestAnotherProcessContinuesWithTheSamePlaces(t *testing.T) {
	f := newFleet(t, 12)
	f.started(operator.UpgradeConfig{Budget: "3"})
	for _, name := range []string{"two", "three"} {
		// Pages of the second build are never ready: the places are taken for long.
		next := build{name: name, text: "broken", upgrade: operator.UpgradeConfig{Budget: "3", ProgressDeadline: time.Hour}}
		for range 3 {
			running := f.run(next)
			operatortest.Eventually(t, "all places are taken", func() bool { s := f.state(); return s.To.ID == name && len(s.Places) == 3 })
			f.touch()
			f.want(map[string]int{"fine": 9, "broken": 3})
			f.end(running)
		}
	}
	running := f.run(build{name: "four", text: "good", upgrade: operator.UpgradeConfig{Budget: "3"}})
	f.phase("four", upgrade.Finished)
	f.want(map[string]int{"good": 12})
	f.end(running)
	if f.most != 3 {
		t.Errorf("%d objects had places at once", f.most)
	}
}

func TestAnnotationsHoldAnObjectOrLetItPass(t *testing.T) {
	f := newFleet(t, 6)
	f.started(operator.UpgradeConfig{Budget: "1"})
	f.patch("site-00", `{"metadata":{"annotations":{"operatorkit.io/upgrade":"hold"}}}`)
	f.patch("site-01", `{"metadata":{"annotations":{"operatorkit.io/upgrade":"now"}}}`)
	next := build{name: "two", text: "broken", upgrade: operator.UpgradeConfig{Budget: "1", ProgressDeadline: time.Second}}
	running := f.run(next)
	f.phase("two", upgrade.Halted)
	f.want(map[string]int{"fine": 4, "broken": 2})
	if got := f.page("site-01"); got != "broken" {
		t.Errorf("the page of the site that passes is %q", got)
	}
	f.end(running)
	running = f.run(build{name: "three", text: "good", upgrade: operator.UpgradeConfig{Budget: "1"}})
	s := f.phase("three", upgrade.Finished)
	f.want(map[string]int{"good": 5, "fine": 1})
	if len(s.OnHold) != 1 || !strings.HasSuffix(s.OnHold[0], "/site-00") {
		t.Errorf("on hold are %v", s.OnHold)
	}
	f.touch()
	f.want(map[string]int{"good": 5, "fine": 1})
	f.patch("site-00", `{"metadata":{"annotations":{"operatorkit.io/upgrade":null}}}`)
	f.want(map[string]int{"good": 6})
	f.end(running)
}

func TestCanariesAreDoneBeforeOthersBegin(t *testing.T) {
	f := newFleet(t, 6)
	f.add("canary-0", map[string]string{"canary": "yes"})
	f.add("canary-1", map[string]string{"canary": "yes"})
	f.started(operator.UpgradeConfig{Budget: "5"})
	canaries := labels.SelectorFromSet(labels.Set{"canary": "yes"})
	next := build{name: "two", text: "broken", upgrade: operator.UpgradeConfig{Budget: "5", ProgressDeadline: time.Second, Canaries: canaries}}
	running := f.run(next)
	s := f.phase("two", upgrade.Halted)
	for _, p := range s.Places {
		if !strings.HasPrefix(p.Name, "canary") {
			t.Errorf("%s has a place", p.Object)
		}
	}
	f.want(map[string]int{"fine": 6, "broken": 2})
	f.end(running)
}

func TestAPermanentErrorIsAFailure(t *testing.T) {
	f := newFleet(t, 6)
	f.started(operator.UpgradeConfig{Budget: "2"})
	var broken atomic.Bool
	broken.Store(true)
	fails := &resource{func(context.Context, any) error {
		if broken.Load() {
			return framework.Permanent(errors.New("out of order"))
		}
		return nil
	}}
	running := f.run(build{name: "two", text: "new", further: []framework.Resource{fails}, upgrade: operator.UpgradeConfig{Budget: "2"}})
	s := f.phase("two", upgrade.Halted)
	if len(s.Places) != 2 || !strings.Contains(s.Reason, "out of order") {
		t.Errorf("state %+v", s)
	}
	f.want(map[string]int{"fine": 6})
	// Once the cause is away, resuming is enough.
	broken.Store(false)
	f.set(upgrade.Running)
	f.phase("two", upgrade.Finished)
	f.want(map[string]int{"new": 6})
	f.end(running)
}

func TestAResourceThatCantPredictItsChangesNeedsAPlace(t *testing.T) {
	f := newFleet(t, 6)
	f.started(operator.UpgradeConfig{Budget: "2"})
	var called atomic.Int64
	opaque := &resource{func(context.Context, any) error { called.Add(1); return errors.New("not yet") }}
	running := f.run(build{name: "two", text: "fine", further: []framework.Resource{opaque}, upgrade: operator.UpgradeConfig{Budget: "2"}})
	operatortest.Eventually(t, "all places are taken", func() bool { return len(f.state().Places) == 2 && called.Load() > 10 })
	f.end(running)
	if f.most > 2 {
		t.Errorf("%d objects had places at once", f.most)
	}
}

func TestWhatIsDeletedGivesItsPlaceBack(t *testing.T) {
	f := newFleet(t, 4)
	f.started(operator.UpgradeConfig{Budget: "1"})
	running := f.run(build{name: "two", text: "broken", upgrade: operator.UpgradeConfig{Budget: "1", ProgressDeadline: time.Hour}})
	last := ""
	for range 4 {
		operatortest.Eventually(t, "another one has the place", func() bool {
			places := f.state().Places
			if len(places) != 1 || places[0].Name == last {
				return false
			}
			last = places[0].Name
			return true
		})
		if err := f.client.Delete(t.Context(), site(f.namespace, last)); err != nil {
			t.Fatal(err)
		}
	}
	f.phase("two", upgrade.Finished)
	f.end(running)
}

func TestAPausedUpgradeGivesNoPlacesAndAFinishedOneHoldsNothing(t *testing.T) {
	f := newFleet(t, 4)
	f.started(operator.UpgradeConfig{Budget: "1"})
	next := build{name: "two", text: "broken", upgrade: operator.UpgradeConfig{Budget: "1", ProgressDeadline: time.Second}}
	running := f.run(next)
	f.phase("two", upgrade.Halted)
	f.set(upgrade.Running)
	f.phase("two", upgrade.Halted) // It fails again.
	f.set(upgrade.Finished)
	f.want(map[string]int{"broken": 4})
	f.end(running)
	running = f.run(build{name: "three", text: "good", upgrade: operator.UpgradeConfig{Budget: "1", MinReady: time.Second}})
	f.phase("three", upgrade.Running)
	f.set(upgrade.Paused)
	s := f.phase("three", upgrade.Paused)
	operatortest.Eventually(t, "no place is taken any more", func() bool { return len(f.state().Places) == 0 })
	f.touch()
	if now := f.pages(); now["broken"] < 4-s.Done-len(s.Places) {
		t.Errorf("pages %v while the upgrade was paused at %+v", now, s)
	}
	f.set(upgrade.Running)
	f.phase("three", upgrade.Finished)
	f.want(map[string]int{"good": 4})
	f.end(running)
}

// set sets the phase as a person does.
func (f *fleet) set(phase upgrade.Phase) {
	f.t.Helper()
	stored := record.Record[upgrade.State]{Client: f.client, Namespace: f.namespace, Name: operator.StateName("fleet", ""), Key: "upgrade"}
	if _, err := stored.Change(f.t.Context(), func(s *upgrade.State) error { return s.Set(phase, time.Now()) }); err != nil {
		f.t.Fatal(err)
	}
}

func TestWithoutItsStateAnUpgradeChangesNothing(t *testing.T) {
	f := newFleet(t, 4)
	f.started(operator.UpgradeConfig{Budget: "4"})
	stored := configMap(f.namespace, operator.StateName("fleet", ""))
	unreadable := client.RawPatch(types.MergePatchType, []byte(`{"data":{"upgrade":"none"}}`))
	if err := f.client.Patch(t.Context(), stored, unreadable); err != nil {
		t.Fatal(err)
	}
	log := &journal{}
	running := f.run(build{name: "two", text: "new", log: log, upgrade: operator.UpgradeConfig{Budget: "4"}})
	operatortest.Eventually(t, "the log says why", func() bool { return log.contains("mend or delete it") })
	f.add("site-new", nil)
	f.want(map[string]int{"fine": 4, "new": 1})
	if err := f.client.Delete(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	f.phase("two", upgrade.Finished)
	f.want(map[string]int{"new": 5})
	f.end(running)
}

func TestReplicasThatShareTheWorkShareTheBudget(t *testing.T) {
	f := newFleet(t, 0)
	var namespaces []string
	for range 6 {
		namespaces = append(namespaces, f.instance.Namespace(t))
	}
	for i := range 30 {
		f.addIn(namespaces[i%6], fmt.Sprintf("site-%02d", i), nil)
	}
	limits := operator.UpgradeConfig{Budget: "3", ProgressDeadline: 3 * time.Second}
	join := func(name, text, identity string) *running {
		return f.run(build{
			name: name, text: text, upgrade: limits, sharding: true, namespaces: namespaces, election: operator.LeaderElectionConfig{
				Enabled: true, Namespace: f.namespace, Identity: identity,
				LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 100 * time.Millisecond,
			},
		})
	}
	start := func(name, text string) (all []*running) {
		for _, identity := range []string{"a", "b", "c"} {
			all = append(all, join(name, text, identity+name))
		}
		return all
	}
	replicas := start("one", "fine")
	f.phase("one", upgrade.Finished)
	f.want(map[string]int{"fine": 30})
	// Replicas of the next build join before those of the former one leave.
	next := start("two", "broken")
	for _, r := range replicas {
		f.end(r)
	}
	if s := f.phase("two", upgrade.Halted); len(s.Places) > 3 {
		t.Errorf("state %+v", s)
	}
	if got := f.pages(); got["broken"] > 3 {
		t.Errorf("pages %v", got)
	}
	// The former build takes over.
	replicas = start("one", "fine")
	for _, r := range next {
		f.end(r)
	}
	f.phase("one", upgrade.Finished)
	f.want(map[string]int{"fine": 30})
	for _, r := range replicas {
		f.end(r)
	}
	if f.most > 3 {
		t.Errorf("%d objects had places at once", f.most)
	}
}

// reserved is a policy that holds everything.
type reserved struct{ reason string }

func (r reserved) Admit(context.Context, framework.Proposal) framework.Verdict {
	return framework.Hold(r.reason)
}

func TestTheStatusSaysWhatAPolicyHolds(t *testing.T) {
	f := newFleet(t, 1)
	running := f.run(build{name: "one", text: "fine", policy: reserved{"until the audit is over"}})
	operatortest.Eventually(t, "the status says so", func() bool {
		text := fmt.Sprint(f.site("site-00").Object["status"])
		return strings.Contains(text, "until the audit is over") && strings.Contains(text, "reason:Held status:False type:Ready")
	})
	f.end(running)
}

func TestABuildThatFailsForAllObjectsHaltsAndLeavesTheirStatus(t *testing.T) {
	f := newFleet(t, 8)
	f.started(operator.UpgradeConfig{Budget: "2"})
	// One has been failing before.
	f.patch("site-07", `{"spec":{"user":"bad"}}`)
	one := func(object *unstructured.Unstructured) bool { return object.GetName() == "site-07" }
	running := f.run(build{name: "one", text: "fine", refuses: one, upgrade: operator.UpgradeConfig{Budget: "2"}})
	operatortest.Eventually(t, "one fails", func() bool { return len(f.unready()) == 1 })
	f.end(running)

	all := func(*unstructured.Unstructured) bool { return true }
	next := build{name: "two", text: "new", refuses: all, upgrade: operator.UpgradeConfig{Budget: "2", ProgressDeadline: time.Second, MaxFailures: 2}}
	running = f.run(next)
	s := f.phase("two", upgrade.Halted)
	if got := f.unready(); len(got) != 3 {
		t.Errorf("%v are not ready, places %v", got, s.Places)
	}
	f.want(map[string]int{"fine": 8})
	f.end(running)
	running = f.run(build{name: "three", text: "good", upgrade: operator.UpgradeConfig{Budget: "3"}})
	f.phase("three", upgrade.Finished)
	f.want(map[string]int{"good": 7, "goodbad": 1})
	if got := f.unready(); len(got) > 0 {
		t.Errorf("%v are not ready", got)
	}
	f.end(running)
}

// unready returns the names of the sites that are not ready.
func (f *fleet) unready() (names []string) {
	for _, name := range f.names {
		if !upgrade.IsReady(f.site(name)) {
			names = append(names, name)
		}
	}
	return names
}

func TestAnObjectInAFightKeepsItsPlaceOnlyForAWhile(t *testing.T) {
	f := newFleet(t, 3)
	f.started(operator.UpgradeConfig{Budget: "1"})
	running := f.run(build{name: "two", text: "broken", upgrade: operator.UpgradeConfig{Budget: "1", ProgressDeadline: time.Hour}})
	operatortest.Eventually(t, "one has the place", func() bool { return len(f.state().Places) == 1 })
	name := f.state().Places[0].Name
	// Somebody else undoes the change each time.
	ctx, cancel := context.WithCancel(t.Context())
	var undoing sync.WaitGroup
	defer undoing.Wait()
	defer cancel()
	undoing.Go(func() {
		for ctx.Err() == nil {
			if f.page(name) == "broken" {
				patch := client.RawPatch(types.MergePatchType, []byte(`{"data":{"text":"theirs"}}`))
				_ = f.client.Patch(ctx, configMap(f.namespace, name+"-page"), patch)
				f.patch(name, `{"metadata":{"annotations":{"touched":"`+time.Now().String()+`"}}}`)
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	operatortest.Eventually(t, "another one has the place", func() bool {
		places := f.state().Places
		return len(places) == 1 && places[0].Name != name
	})
	cancel()
	undoing.Wait()
	f.end(running)
}

func TestWhatIsPausedWhileItWaitsIsLeftOut(t *testing.T) {
	f := newFleet(t, 3)
	f.started(operator.UpgradeConfig{Budget: "1"})
	running := f.run(build{name: "two", text: "broken", upgrade: operator.UpgradeConfig{Budget: "1", ProgressDeadline: 2 * time.Second, MaxFailures: 5}})
	operatortest.Eventually(t, "one has the place", func() bool { return len(f.state().Places) == 1 })
	for _, name := range f.names {
		f.patch(name, `{"metadata":{"annotations":{"operatorkit.io/paused":"true"}}}`)
	}
	if s := f.phase("two", upgrade.Finished); s.Failures > 0 {
		t.Errorf("state %+v", s)
	}
	f.end(running)
}

func TestAnUpgradeHaltsWhenFailedObjectsHaveAllPlaces(t *testing.T) {
	f := newFleet(t, 3)
	f.started(operator.UpgradeConfig{Budget: "1"})
	running := f.run(build{name: "two", text: "broken", upgrade: operator.UpgradeConfig{Budget: "1", ProgressDeadline: time.Second, MaxFailures: 3}})
	if s := f.phase("two", upgrade.Halted); s.Failures != 1 {
		t.Errorf("state %+v", s)
	}
	f.end(running)
}
