package framework_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/frameworktest"
)

// finalizersOf returns the finalizers of an object that exists.
func (c *cluster) finalizersOf(name string) string {
	c.t.Helper()
	cm := c.get(name)
	if cm == nil {
		return "gone"
	}
	return strings.Join(cm.Finalizers, " ")
}

func TestR16TwoOperatorsOnOneKindHoldAndCleanUpForThemselves(t *testing.T) {
	c := newCluster(t, operatortest.Start(t))
	open := make(chan struct{})
	first := &calls{onCall: func(ctx context.Context, call string, _ *corev1.ConfigMap) error {
		if call != "deleted" {
			return nil
		}
		select {
		case <-open:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	second := &calls{}
	running(t, newFramework(t, framework.Config{Operator: "first", Source: c.source()}, first.resource()))
	running(t, newFramework(t, framework.Config{Operator: "second", Source: c.source()}, second.resource()))
	c.create(c.object("a"))
	operatortest.Eventually(t, "both hold it", func() bool {
		return strings.Contains(c.finalizersOf("a"), "_first_") && strings.Contains(c.finalizersOf("a"), "_second_")
	})
	c.delete("a")
	operatortest.Eventually(t, "only the first holds it", func() bool { return c.finalizersOf("a") == "operatorkit.io/v1_first_configmaps" })
	if second.of("deleted a") == 0 {
		t.Error("the second took its finalizer off without having cleaned up")
	}
	close(open)
	operatortest.Eventually(t, "it is gone", c.gone("a"))
}

func TestR16FinalizersOfFormerNamesAreTakenOver(t *testing.T) {
	c := newCluster(t, operatortest.Start(t))
	before := &calls{}
	stop := running(t, newFramework(t, framework.Config{Operator: "old", Name: "things", Source: c.source()}, before.resource()))
	for _, name := range []string{"kept", "deleted", "both"} {
		c.create(c.object(name))
		operatortest.Eventually(t, "it is held", func() bool {
			return c.finalizersOf(name) == "operatorkit.io/v1_old_things" && before.of("created "+name) > 0
		})
	}
	stop()
	c.delete("deleted")
	// A crash between the two writes of a takeover leaves both.
	c.merge("both", `{"metadata": {"finalizers": ["operatorkit.io/v1_old_things", "operatorkit.io/v1_new_objects", "example.com/others"]}}`)

	after := &calls{onCall: func(_ context.Context, _ string, cm *corev1.ConfigMap) error {
		if strings.Contains(fmt.Sprint(cm.Finalizers), "old") && cm.DeletionTimestamp == nil {
			return errors.New("a resource sees a former finalizer")
		}
		return nil
	}}
	running(t, newFramework(t, framework.Config{
		Operator: "new", FormerOperators: []string{"old"}, Name: "objects", FormerNames: []string{"things"}, Source: c.source(),
	}, after.resource()))
	operatortest.Eventually(t, "what was deleted meanwhile is gone", c.gone("deleted"))
	operatortest.Eventually(t, "what stays is held anew", func() bool {
		return c.finalizersOf("kept") == "operatorkit.io/v1_new_objects" && after.of("created kept") > 0
	})
	operatortest.Eventually(t, "what was half done is held anew", func() bool {
		return c.finalizersOf("both") == "operatorkit.io/v1_new_objects example.com/others" && after.of("created both") > 0
	})
	if after.of("deleted deleted") != 1 || after.of("deleted kept") != 0 {
		t.Errorf("calls %v", after.count)
	}
}

func TestR16AFinalizerThatIsChangedIsTakenOver(t *testing.T) {
	c := newCluster(t, operatortest.Start(t))
	finalizer := "operatorkit.io/v1_o_f"
	for _, step := range []struct {
		config framework.Config
		want   string
	}{
		{framework.Config{}, finalizer},
		{framework.Config{Finalizer: "example.com/own"}, "example.com/own"},
		{framework.Config{FormerFinalizers: []string{"example.com/own"}}, finalizer},
	} {
		calls := &calls{}
		step.config.Operator, step.config.Name, step.config.Source = "o", "f", c.source()
		stop := running(t, newFramework(t, step.config, calls.resource()))
		if c.get("a") == nil {
			c.create(c.object("a"))
		}
		operatortest.Eventually(t, "it is held by "+step.want, func() bool { return c.finalizersOf("a") == step.want && calls.of("created a") > 0 })
		stop()
	}
}

func TestR16SecondFrameworkOfOneIdentityIsRefused(t *testing.T) {
	source := informer.NewPush("objects")
	registry := prometheus.NewRegistry()
	running(t, newFramework(t, framework.Config{Source: source, Registerer: registry}, &resource{name: "r"}))
	operatortest.Eventually(t, "it runs", func() bool {
		n, err := testutil.GatherAndCount(registry, "operatorkit_framework_info")
		return err == nil && n > 0
	})

	own := fmt.Sprintf(`framework "objects" of operator %q`, identity.Program())
	for name, test := range map[string]struct {
		config framework.Config
		shared string
	}{
		"on its source":                        {framework.Config{Source: source}, "Source"},
		"with its registerer":                  {framework.Config{Source: informer.NewPush("objects"), Registerer: registry}, "Registerer"},
		"on its source under another name":     {framework.Config{Source: source, Name: "others"}, ""},
		"of another operator on its source":    {framework.Config{Source: source, Operator: "another"}, ""},
		"on a source of its own, unregistered": {framework.Config{Source: informer.NewPush("objects")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFramework(t, test.config, &resource{name: "r"})
			if test.shared == "" {
				running(t, f)
				return
			}
			err := f.Run(t.Context())
			want := fmt.Sprintf("another %s runs already on its %s", own, test.shared)
			if !framework.IsInvalidConfig(err) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}

func TestInformerThatIsASourceIsUsedAsOne(t *testing.T) {
	c := newCluster(t, operatortest.Start(t))
	calls := &calls{}
	f := newFramework(t, framework.Config{Operator: "o", Informer: c.source()}, calls.resource())
	if f.Name() != "configmaps" {
		t.Errorf("its name is %q", f.Name())
	}
	running(t, f)
	c.create(c.object("a"))
	operatortest.Eventually(t, "it is held", func() bool { return c.finalizersOf("a") == "operatorkit.io/v1_o_configmaps" })
	c.delete("a")
	operatortest.Eventually(t, "it is gone", c.gone("a"))
	if calls.of("deleted a") != 1 {
		t.Errorf("calls %v", calls.count)
	}
}

func TestObjectThatNoResourceSetHandlesIsToldOnce(t *testing.T) {
	c := newCluster(t, operatortest.Start(t))
	recorder, calls, registry := &events{}, &calls{}, prometheus.NewRegistry()
	f := newFramework(t, framework.Config{
		Operator: "o", Name: "f", Source: c.source(), Recorder: recorder, Registerer: registry,
		ResourceRouter: routerOf(t, framework.ResourceSetConfig{
			Handles: framework.HandlesLabel("version", "v1"), Resources: []framework.Resource{calls.resource()},
		}),
	})
	running(t, f)
	c.create(c.object("never"))
	c.create(c.object("lost"))
	c.merge("lost", `{"metadata": {"labels": {"version": "v1"}}}`)
	operatortest.Eventually(t, "it is held", func() bool { return c.finalizersOf("lost") != "" })
	c.merge("lost", `{"metadata": {"labels": {"version": null}}}`)
	operatortest.Eventually(t, "both are counted", func() bool { s := f.Status(); return s.Unmatched == 2 && s.UnmatchedHeld == 1 })
	c.merge("never", `{"data": {"another": "change"}}`)
	c.merge("lost", `{"data": {"another": "change"}}`)
	frameworktest.Look(t, f, c.get("never"), c.get("lost"))

	var never, lost []string
	for _, e := range recorder.all() {
		if strings.HasPrefix(e, "never ") {
			never = append(never, e)
		} else if strings.Contains(e, "Warning") {
			lost = append(lost, e)
		}
	}
	alone := `NoResourceSet no resource set of framework "f" of operator "o" handles it: it is left alone`
	if diff := cmp.Diff([]string{"never Normal " + alone}, never); diff != "" {
		t.Error(diff)
	}
	want := "lost Warning " + alone + `. It keeps the finalizer "operatorkit.io/v1_o_f", and its deletion will wait: give it back the labels by which ` +
		"a resource set handled it, or have a set with HandlesRest"
	if diff := cmp.Diff([]string{want}, lost); diff != "" {
		t.Error(diff)
	}
	metric := `
# HELP operatorkit_framework_unmatched_objects Objects that no resource set handles, by whether they have a finalizer of the framework: held or free.
# TYPE operatorkit_framework_unmatched_objects gauge
operatorkit_framework_unmatched_objects{finalizer="free",framework="f"} 1
operatorkit_framework_unmatched_objects{finalizer="held",framework="f"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(metric), "operatorkit_framework_unmatched_objects"); err != nil {
		t.Error(err)
	}
	c.merge("lost", `{"metadata": {"labels": {"version": "v1"}}}`)
	c.delete("never")
	operatortest.Eventually(t, "none is counted", func() bool { s := f.Status(); return s.Unmatched == 0 && s.UnmatchedHeld == 0 })
}

func TestSetWithHandlesRestHandlesWhatNoOtherDoes(t *testing.T) {
	set := func(name string, config framework.ResourceSetConfig) *framework.ResourceSet {
		config.Name, config.Resources = name, []framework.Resource{&resource{name: "r"}}
		s, err := framework.NewResourceSet(config)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	rest := set("rest", framework.ResourceSetConfig{HandlesRest: true})
	v1 := set("v1", framework.ResourceSetConfig{Handles: framework.HandlesLabel("version", "v1")})
	router, err := framework.NewResourceRouter(framework.ResourceRouterConfig{Logger: quiet(t), ResourceSets: []*framework.ResourceSet{rest, v1}})
	if err != nil {
		t.Fatal(err)
	}
	labelled := configMap("a")
	labelled.Labels = map[string]string{"version": "v1"}
	for want, obj := range map[string]any{"v1": labelled, "rest": configMap("b")} {
		if got, err := router.ResourceSet(obj); err != nil || got.Name() != want {
			t.Errorf("got %v and %v, want %s", got, err, want)
		}
	}
	_, err = framework.NewResourceRouter(framework.ResourceRouterConfig{Logger: quiet(t), ResourceSets: []*framework.ResourceSet{rest, rest}})
	if !framework.IsInvalidConfig(err) || !strings.Contains(err.Error(), "ResourceSets[1]: an earlier one has HandlesRest too") {
		t.Errorf("two of them: %v", err)
	}
	_, err = framework.NewResourceSet(framework.ResourceSetConfig{HandlesRest: true, Handles: framework.HandlesType[any], Resources: rest.Resources()})
	if !framework.IsInvalidConfig(err) {
		t.Errorf("with Handles: %v", err)
	}
}

// renamed is a resource with former names that writes down its scope.
type renamed struct {
	resource
	former []string
}

func (r *renamed) FormerNames() []string { return r.former }

// ofKinds is a resource that looks after things of some kinds only.
type ofKinds struct {
	framework.Resource
	kinds []string
}

func (r *ofKinds) Kinds() []string { return r.kinds }

func (r *ofKinds) FormerNames() []string { return r.Resource.(framework.FormerNamer).FormerNames() }

func TestR16ResourcesKnowWhoseTheyAreAndWhatOthersLookAfter(t *testing.T) {
	var mu sync.Mutex
	scopes := map[string]identity.Scope{}
	note := func(name string, former ...string) framework.Resource {
		r := &renamed{resource{name: name, created: func(ctx context.Context, _ any) error {
			mu.Lock()
			defer mu.Unlock()
			scopes[name] = *identity.From(ctx)
			return nil
		}}, former}
		return framework.WrapSteps(r, func(ctx context.Context, _ framework.StepInfo, next func(context.Context) error) error {
			return next(ctx)
		})
	}
	resources := []framework.Resource{note("a", "objects", "things"), note("b", "things"), note("objects")}
	check := func(i identity.Identity) {
		t.Helper()
		want := map[string]identity.Scope{
			"a": {Identity: i, Left: []string{"objects", "things"}}, "b": {Identity: i}, "objects": {Identity: i},
		}
		if diff := cmp.Diff(want, scopes); diff != "" {
			t.Error(diff)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		source := informer.NewPush("objects")
		defer running(t, newFramework(t, framework.Config{Operator: "o", Source: source, FormerNames: []string{"f1"}}, resources...))()
		put(t, source, configMap("a"))
		synctest.Wait()
		check(identity.Identity{Operator: "o", Framework: "objects", FormerFrameworks: []string{"f1"}})
	})
	clear(scopes)
	if err := framework.ProcessUpdate(t.Context(), configMap("a"), resources); err != nil {
		t.Fatal(err)
	}
	check(identity.Identity{Operator: identity.Program(), Framework: identity.DefaultFramework})

	clear(scopes)
	limited := func(r framework.Resource, kinds ...string) framework.Resource { return &ofKinds{r, kinds} }
	resources = []framework.Resource{
		limited(note("a", "objects", "things"), "x", "y"), note("b", "things"), limited(note("c", "objects"), "y"), limited(note("objects"), "y", "z"),
	}
	if err := framework.ProcessUpdate(t.Context(), configMap("a"), resources); err != nil {
		t.Fatal(err)
	}
	left := scopes["a"]
	objects, things := left.Mark("objects"), left.Mark("things")
	got := []bool{left.LeavesKind(objects, "x"), left.LeavesKind(objects, "y"), left.LeavesKind(objects, "z"), left.LeavesKind(things, "x"), left.Leaves(objects)}
	if diff := cmp.Diff([]bool{false, true, true, true, false}, got); diff != "" {
		t.Error(diff)
	}

	for want, resources := range map[string][]framework.Resource{
		`Resources[1]: "b" takes over from "a" and must stand before it, which else deletes what it takes over`: {note("a"), note("b", "a")},
		`Resources[0]: the former names of "a" must be others, and not empty`:                                   {note("a", "a")},
	} {
		_, err := framework.NewResourceSet(framework.ResourceSetConfig{Handles: framework.HandlesType[any], Resources: resources})
		if !framework.IsInvalidConfig(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
