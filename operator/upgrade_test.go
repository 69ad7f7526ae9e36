package operator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/internal/upgrade"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

const fleetLabel = "fleet"

// fleet is a number of objects, each with a page that an operator makes. A page is broken if its
// text is.
type fleet struct {
	t         *testing.T
	client    client.WithWatch
	instance  *operatortest.Instance
	namespace string
	names     []string

	mu sync.Mutex
	// broken are the texts with which a page is never ready.
	broken map[string]bool
	// most is the largest number of places at once.
	most int
}

func newFleet(t *testing.T, objects int) *fleet {
	t.Helper()
	instance := operatortest.Start(t)
	f := &fleet{t: t, instance: instance, namespace: instance.Namespace(t), broken: map[string]bool{}}
	f.client = operatortest.NewClient(t, instance.RESTConfig(), nil)
	for i := range objects {
		f.add(fmt.Sprintf("site-%02d", i), nil)
	}
	return f
}

func (f *fleet) add(name string, more map[string]string) {
	f.t.Helper()
	object := configMap(f.namespace, name)
	object.Labels = map[string]string{fleetLabel: "yes"}
	for k, v := range more {
		object.Labels[k] = v
	}
	if err := f.client.Create(f.t.Context(), object); err != nil {
		f.t.Fatal(err)
	}
	f.names = append(f.names, name)
}

// build is a build of the operator of a fleet.
type build struct {
	name string
	// text returns the text of a page.
	text    func(object *corev1.ConfigMap) string
	upgrade operator.UpgradeConfig
	log     *journal
}

func textOf(text string) func(*corev1.ConfigMap) string {
	return func(object *corev1.ConfigMap) string { return text + object.Data["user"] }
}

// run runs a build.
func (f *fleet) run(b build) *running {
	f.t.Helper()
	return run(f.t, f.operator(b))
}

func (f *fleet) operator(b build) *operator.Operator {
	f.t.Helper()
	logger := quiet(f.t)
	if b.log != nil {
		logger = logTo(f.t, b.log)
	}
	deps, err := operator.NewDependencies(operator.DependenciesConfig{
		Name: "fleet", RESTConfig: f.instance.RESTConfig(), Scheme: f.client.Scheme(), Logger: logger, Namespaces: []string{f.namespace},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(deps.Close)
	source, err := informer.NewKubernetes(informer.KubernetesConfig{
		Client: deps.Client, Object: &corev1.ConfigMap{}, Namespaces: []string{f.namespace}, Logger: quiet(f.t),
		LabelSelector: labels.SelectorFromSet(labels.Set{fleetLabel: "yes"}),
	})
	if err != nil {
		f.t.Fatal(err)
	}
	pages, err := objectresource.New(objectresource.Config[*corev1.ConfigMap]{
		Name: "pages", Client: deps.Client, Logger: logger, Kinds: []client.Object{&corev1.ConfigMap{}},
		Desired: func(_ context.Context, object *corev1.ConfigMap) ([]client.Object, error) {
			page := configMap(object.Namespace, object.Name+"-page")
			page.Data = map[string]string{"text": b.text(object)}
			return []client.Object{page}, nil
		},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	sites, err := deps.NewFramework(framework.Config{Name: "sites", Source: source, Resources: []framework.Resource{pages}})
	if err != nil {
		f.t.Fatal(err)
	}
	b.upgrade.Build = b.name
	if b.upgrade.Ready == nil {
		b.upgrade.Ready = f.ready
	}
	if b.upgrade.MinReady == 0 {
		b.upgrade.MinReady = 50 * time.Millisecond
	}
	return newOperator(f.t, operator.Config{
		Name: "fleet", Logger: logger, RESTConfig: deps.RESTConfig, Frameworks: []*framework.Framework{sites},
		Upgrade: b.upgrade, StateNamespace: f.namespace,
	})
}

// ready reports whether the page of an object is ready.
func (f *fleet) ready(obj any) bool {
	text := f.page(obj.(client.Object).GetName())
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.broken[text]
}

func (f *fleet) page(name string) string {
	page := configMap(f.namespace, name+"-page")
	if err := f.client.Get(context.Background(), client.ObjectKeyFromObject(page), page); err != nil {
		return ""
	}
	return page.Data["text"]
}

// pages returns the number of pages with each text.
func (f *fleet) pages() map[string]int {
	texts := map[string]int{}
	list := &corev1.ConfigMapList{}
	if err := f.client.List(context.Background(), list, client.InNamespace(f.namespace)); err != nil {
		f.t.Error(err)
	}
	for _, item := range list.Items {
		if strings.HasSuffix(item.Name, "-page") {
			texts[item.Data["text"]]++
		}
	}
	return texts
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

func TestAnUpgradeThatBreaksObjectsHaltsAndTheFormerBuildBringsThemBack(t *testing.T) {
	f := newFleet(t, 20)
	f.broken["broken"] = true
	limits := operator.UpgradeConfig{Budget: "3", ProgressDeadline: 2 * time.Second}
	first := build{name: "one", text: textOf("fine"), upgrade: limits}
	running := f.run(first)
	f.phase("one", upgrade.Finished)
	f.want(map[string]int{"fine": 20})
	if err := running.stop(); err != nil {
		t.Fatal(err)
	}

	log := &journal{}
	second := build{name: "two", text: textOf("broken"), upgrade: limits, log: log}
	running = f.run(second)
	s := f.phase("two", upgrade.Halted)
	if s.From.ID != "one" || len(s.Places) != 3 || s.Failures == 0 {
		t.Errorf("state %+v", s)
	}
	f.want(map[string]int{"fine": 17, "broken": 3})
	if !log.contains("upgrade Halted") {
		t.Error("the log does not say that the upgrade is halted")
	}
	// It stays halted, also in another process of the build.
	if err := running.stop(); err != nil {
		t.Fatal(err)
	}
	running = f.run(second)
	f.touch()
	f.want(map[string]int{"fine": 17, "broken": 3})
	if s := f.state(); s.Phase != upgrade.Halted {
		t.Errorf("state %+v", s)
	}
	// A user's change goes through, and so do new objects and deletions.
	f.change("site-19", "!")
	f.add("site-20", nil)
	if err := f.client.Delete(t.Context(), configMap(f.namespace, f.held())); err != nil {
		t.Fatal(err)
	}
	if err := running.stop(); err != nil {
		t.Fatal(err)
	}

	running = f.run(first)
	f.phase("one", upgrade.Finished)
	if err := running.stop(); err != nil {
		t.Fatal(err)
	}
	if f.most > 3 {
		t.Errorf("%d objects had places at once", f.most)
	}
}

// touch makes all objects be reconciled again.
func (f *fleet) touch() {
	f.t.Helper()
	for _, name := range f.names {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"touched":"`+time.Now().String()+`"}}}`))
		if err := client.IgnoreNotFound(f.client.Patch(f.t.Context(), configMap(f.namespace, name), patch)); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *fleet) change(name, data string) {
	f.t.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"user":"`+data+`"}}`))
	if err := f.client.Patch(f.t.Context(), configMap(f.namespace, name), patch); err != nil {
		f.t.Fatal(err)
	}
}

// held returns the name of an object without a place.
func (f *fleet) held() string {
	s := f.state()
	for _, name := range f.names {
		if !slices.ContainsFunc(s.Places, func(p upgrade.Place) bool { return p.Name == name }) {
			return name
		}
	}
	f.t.Fatal("all have places")
	return ""
}

func TestABuildThatChangesNothingTakesNoPlace(t *testing.T) {
	f := newFleet(t, 20)
	running := f.run(build{name: "one", text: textOf("fine"), upgrade: operator.UpgradeConfig{Budget: "1"}})
	f.phase("one", upgrade.Finished)
	_ = running.stop()
	running = f.run(build{name: "two", text: textOf("fine"), upgrade: operator.UpgradeConfig{Budget: "1"}})
	s := f.phase("two", upgrade.Finished)
	if s.Done != 0 || f.most != 0 {
		t.Errorf("state %+v; %d objects had places at once", s, f.most)
	}
	_ = running.stop()
}

