package statemanagerresource_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/plantest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanagerresource"
)

// world is a namespace of the real API server, with a board whose writes are recorded, and its user.
type world struct {
	t         *testing.T
	user      client.WithWatch
	faults    *operatortest.Faults
	namespace string
	board     *board
	log       *buffer
	resources []framework.Resource
}

func newWorld(t *testing.T) *world {
	t.Helper()
	server := operatortest.Start(t)
	definitions, err := operator.ReadCRDs(v1alpha1.CRDs)
	if err != nil {
		t.Fatal(err)
	}
	server.InstallCRDs(t, definitions...)
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, faults: operatortest.NewFaults(), namespace: server.Namespace(t), log: &buffer{}}
	cfg := server.RESTConfig()
	w.user = operatortest.NewClient(t, cfg, scheme)
	own := operatortest.NewClient(t, w.faults.Wrap(cfg), scheme)
	w.board = newBoard(own)
	logger := w.logger()
	compute := func(ctx context.Context, set serviceSet) (*statemanager.Set, *work, error) {
		about := &statemanager.Set{ServiceSet: set}
		todo, err := w.board.Compute(ctx, about)
		return about, todo, err
	}
	services, err := statemanagerresource.New(statemanagerresource.Config[serviceSet]{Manager: w.board, Logger: logger, Compute: compute})
	if err != nil {
		t.Fatal(err)
	}
	check, err := statemanagerresource.NewCheck(statemanagerresource.CheckConfig[serviceSet]{Compute: compute})
	if err != nil {
		t.Fatal(err)
	}
	w.resources = []framework.Resource{services, check}
	return w
}

func (w *world) logger() micrologger.Logger {
	w.t.Helper()
	logger, err := micrologger.New(micrologger.Config{IOWriter: w.log})
	if err != nil {
		w.t.Fatal(err)
	}
	return logger
}

// entry is a service with values.
func (w *world) entry(name, values string, dependsOn ...string) v1alpha1.ServiceWithValues {
	e := v1alpha1.ServiceWithValues{Namespace: w.namespace, Name: name, Template: "t", Values: values}
	for _, d := range dependsOn {
		e.DependsOn = append(e.DependsOn, v1alpha1.ServiceDependsOn{Namespace: w.namespace, Name: d})
	}
	return e
}

// create creates a set.
func (w *world) create(entries ...v1alpha1.ServiceWithValues) serviceSet {
	w.t.Helper()
	set := &v1alpha1.ServiceSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "prod"},
		Spec:       v1alpha1.ServiceSetSpec{Cluster: "prod", Services: entries},
	}
	if err := w.user.Create(w.t.Context(), set); err != nil {
		w.t.Fatal(err)
	}
	return set
}

// want changes what a set lists.
func (w *world) want(set serviceSet, entries ...v1alpha1.ServiceWithValues) {
	w.t.Helper()
	before := set.DeepCopy()
	set.Spec.Services = entries
	if err := w.user.Patch(w.t.Context(), set, client.MergeFrom(before)); err != nil {
		w.t.Fatal(err)
	}
}

// run reconciles the sets of the namespace until the test ends. Nothing is watched but the sets: what a write achieves is seen because
// the resource asks for another look.
func (w *world) run() {
	w.t.Helper()
	source, err := informer.NewKubernetes(informer.KubernetesConfig{
		Client: w.user, Object: &v1alpha1.ServiceSet{}, Namespaces: []string{w.namespace}, Logger: w.logger(),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	f, err := framework.New(framework.Config{
		Operator: "tester", Name: "board", Source: source, Logger: w.logger(), Resources: w.resources, ShutdownTimeout: time.Second,
		BackOffFactory: func() backoff.BackOff { return backoff.NewConstantBackOff(20 * time.Millisecond) },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
		if w.t.Failed() {
			w.t.Log("log:\n" + w.log.String())
		}
	})
}

// pinned waits until the ConfigMaps of the board are these, as "name values".
func (w *world) pinned(want ...string) {
	w.t.Helper()
	operatortest.Eventually(w.t, fmt.Sprintf("the board has %q", want), func() error {
		list := &corev1.ConfigMapList{}
		if err := w.user.List(w.t.Context(), list, client.InNamespace(w.namespace), client.HasLabels{setLabel}); err != nil {
			return err
		}
		got := []string{}
		for _, cm := range list.Items {
			got = append(got, cm.Name+" "+cm.Data["values"])
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			return fmt.Errorf("it has %q", got)
		}
		return nil
	})
}

// logged waits until the log has all parts in one line, and returns how many lines have.
func (w *world) logged(parts ...string) (lines int) {
	w.t.Helper()
	operatortest.Eventually(w.t, fmt.Sprintf("the log has %q", parts), func() bool {
		lines = w.lines(parts...)
		return lines > 0
	})
	return lines
}

func (w *world) lines(parts ...string) (n int) {
	for line := range strings.Lines(w.log.String()) {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			n++
		}
	}
	return n
}

func aConfigMap(name, verb string) operatortest.Match {
	return func(r operatortest.Request) bool {
		return r.Resource == "configmaps" && r.Verb == verb && (r.Name == name || name == "")
	}
}

func TestTheSetIsLookedAtUntilNothingIsLeftToDo(t *testing.T) {
	w := newWorld(t)
	w.run()
	set := w.create(w.entry("web", "1", "db"), w.entry("db", "1"))
	w.pinned("db 1", "web 1")
	w.want(set, w.entry("web", "2"), w.entry("db", "2"), w.entry("app", "1", "web", "db"))
	w.pinned("app 1", "db 2", "web 2")
	w.want(set, w.entry("web", "2"))
	w.pinned("web 2")
	if n := w.lines("reconciliation failed"); n > 0 {
		t.Errorf("%d failures are logged", n)
	}
}

func TestAConflictIsNobodysBusinessAndAFailureIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	w.run()
	set := w.create(w.entry("a", "1"), w.entry("b", "1"))
	w.pinned("a 1", "b 1")
	conflicts := w.faults.On(aConfigMap("a", "update"), operatortest.Conflict()).Times(3)
	w.want(set, w.entry("a", "2"), w.entry("b", "2"))
	w.pinned("a 2", "b 2")
	if conflicts.Hits() != 3 || w.lines("reconciliation failed") > 0 {
		t.Errorf("%d conflicts, and %d failures are logged", conflicts.Hits(), w.lines("reconciliation failed"))
	}

	failures := w.faults.On(aConfigMap("a", "update"), operatortest.InternalError())
	w.want(set, w.entry("a", "3"), w.entry("b", "3"))
	w.pinned("a 2", "b 3")
	w.logged("reconciliation failed", "service "+w.namespace+"/a: ", `"retry":"20ms"`)
	failures.Remove()
	w.pinned("a 3", "b 3")
}

func TestWhatIsImpossibleIsTriedOnceAndWaitsForAChange(t *testing.T) {
	w := newWorld(t)
	w.run()
	set := w.create(w.entry("a", impossible), w.entry("b", "1"))
	w.pinned("b 1")
	w.logged("reconciliation failed", "service "+w.namespace+"/a: this is impossible", `"retry":"at the next change"`, `"resource":"service-faults"`)
	if tries := w.board.tries(); tries != 1 {
		t.Errorf("it was tried %d times", tries)
	}
	w.want(set, w.entry("a", impossible), w.entry("b", "2"))
	w.pinned("b 2")
	operatortest.Eventually(t, "another change is another try", func() bool { return w.board.tries() == 2 })
	w.want(set, w.entry("a", "1"), w.entry("b", "2"), w.entry("c", unreadable))
	w.pinned("a 1", "b 2")
	w.logged("service "+w.namespace+"/c: the values can't be read", `"retry":"at the next change"`)
}

func TestASetGoesWhenAllOfItIsGone(t *testing.T) {
	w := newWorld(t)
	w.run()
	set := w.create(w.entry("a", "1"), w.entry("b", "1"))
	w.pinned("a 1", "b 1")
	held := &corev1.ConfigMap{}
	if err := w.user.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "a"}, held); err != nil {
		t.Fatal(err)
	}
	held.Finalizers = []string{"example.com/hold"}
	if err := w.user.Update(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	if err := w.user.Delete(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	w.pinned("a 1")
	if err := w.user.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil || !slices.Contains(set.Finalizers, "operatorkit.io/v1_tester_board") {
		t.Fatalf("the set went before its services: %v, finalizers %v", err, set.Finalizers)
	}
	if err := w.user.Patch(t.Context(), held, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	w.pinned()
	operatortest.Eventually(t, "the set is gone", func() bool {
		return apierrors.IsNotFound(w.user.Get(t.Context(), client.ObjectKeyFromObject(set), set))
	})
}

// TestThePlanIsWhatIsDoneThen compares plans with what the API server was asked to write, and with what became of it, for whatever is
// there and whatever is desired, beside services that can't be worked out.
func TestThePlanIsWhatIsDoneThen(t *testing.T) {
	w := newWorld(t)
	there := &plantest.Cluster{Client: w.user, Faults: w.faults, Namespace: w.namespace, Kinds: []client.Object{&corev1.ConfigMap{}}}
	seen := map[plan.Action]int{}
	failed, noted := 0, 0
	check := func(p *plan.Plan) {
		for _, c := range p.Resources[0].Changes {
			seen[c.Action]++
		}
		noted += len(p.Resources[0].Notes)
		if p.Outcome == plan.Failed {
			failed++
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		set := prod()
		set.Namespace = w.namespace
		for generation := range 5 {
			set.Generation = int64(generation)
			w.draw(rt, set)
			check(plantest.Update(rt, there, set, w.resources...))
			w.meddle(rt)
		}
		set.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		check(plantest.Delete(rt, there, set, w.resources...))
		if err := w.user.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace(w.namespace), client.HasLabels{setLabel}); err != nil {
			rt.Fatal(err)
		}
	})
	t.Logf("changes by action: %v, failures: %d, notes: %d", seen, failed, noted)
	if !testing.Short() && (seen[plan.Create] == 0 || seen[plan.Update] == 0 || seen[plan.Delete] == 0 || failed == 0 || noted == 0) { // a sample need not have them all
		t.Error("the states were not various enough to prove anything")
	}
}

// draw makes up what a set lists: services that depend on earlier ones.
func (w *world) draw(rt *rapid.T, set serviceSet) {
	set.Spec.Services = nil
	for _, name := range []string{"a", "b", "c", "d"} {
		if !rapid.Bool().Draw(rt, "lists "+name) {
			continue
		}
		values := rapid.SampledFrom([]string{"1", "2", "3", "1", "2", "3", unreadable}).Draw(rt, "values")
		e := w.entry(name, values)
		for _, earlier := range set.Spec.Services {
			if rapid.Bool().Draw(rt, "depends on "+earlier.Name) {
				e.DependsOn = append(e.DependsOn, v1alpha1.ServiceDependsOn{Namespace: w.namespace, Name: earlier.Name})
			}
		}
		set.Spec.Services = append(set.Spec.Services, e)
	}
}

// meddle is somebody who changes a ConfigMap of the board, or takes one away.
func (w *world) meddle(rt *rapid.T) {
	list := &corev1.ConfigMapList{}
	if err := w.user.List(w.t.Context(), list, client.InNamespace(w.namespace), client.HasLabels{setLabel}); err != nil {
		rt.Fatal(err)
	}
	edits := map[string]func(*corev1.ConfigMap) error{
		"change": func(cm *corev1.ConfigMap) error {
			cm.Data["values"] = "somebody's"
			return w.user.Update(w.t.Context(), cm)
		},
		"delete":  func(cm *corev1.ConfigMap) error { return w.user.Delete(w.t.Context(), cm) },
		"nothing": func(*corev1.ConfigMap) error { return nil },
	}
	for i := range list.Items {
		edit := rapid.SampledFrom(slices.Sorted(maps.Keys(edits))).Draw(rt, "somebody's edit")
		if err := edits[edit](&list.Items[i]); err != nil {
			rt.Fatal(err)
		}
	}
}
