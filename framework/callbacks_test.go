package framework_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// bombs are what an author can hand in as an interface, each of whose methods panics.
type bombs struct{}

func (bombs) Observe(*framework.Record)                    { panic("in Observe") }
func (bombs) Event(runtime.Object, string, string, string) { panic("in Event") }
func (bombs) NextBackOff() time.Duration                   { panic("in NextBackOff") }
func (bombs) Reset()                                       { panic("in Reset") }
func (bombs) Watch(context.Context) (deleteChan, updateChan chan watch.Event, errChan chan error) {
	panic("in Watch")
}

func (bombs) EnsureCreated(context.Context, *apiextensionsv1.CustomResourceDefinition, backoff.BackOff) error {
	panic("in EnsureCreated")
}

// TestR4ACallbackThatPanicsStopsNothing puts a panic into each function and interface of the configuration of a framework, in
// turn. The reconciliation of another object goes on, the object is tried again, and the log has the stack.
// panicked is what the log says of a panic in this file: where it was, and not with which words, which may be secret.
const panicked = "panic: value of type string in github.com/operatorkit/operatorkit/framework_test."

func TestR4ACallbackThatPanicsStopsNothing(t *testing.T) {
	bad := func(obj any) bool { return obj.(*corev1.ConfigMap).Name == "bad" }
	for name, test := range map[string]struct {
		config framework.Config
		set    framework.ResourceSetConfig
		watch  bool
		want   string
	}{
		"Handles":          {set: framework.ResourceSetConfig{Handles: func(any) bool { panic("in Handles") }}, want: panicked},
		"InitCtx":          {config: framework.Config{InitCtx: func(context.Context, any) (context.Context, error) { panic("in InitCtx") }}, want: panicked},
		"InitCtx of a set": {set: framework.ResourceSetConfig{InitCtx: func(context.Context, any) (context.Context, error) { panic("in InitCtx") }}, want: panicked},
		"Observer":         {config: framework.Config{Observer: bombs{}}, want: panicked},
		"Recorder":         {config: framework.Config{Recorder: bombs{}}, want: panicked},
		"BackOffFactory":   {config: framework.Config{BackOffFactory: func() backoff.BackOff { panic("in BackOffFactory") }}, want: panicked},
		"BackOff":          {config: framework.Config{BackOffFactory: func() backoff.BackOff { return bombs{} }}, want: panicked},
		"PlanReporter": {config: framework.Config{PlanOnly: true, PlanReporter: func(context.Context, any, *plan.Plan) error {
			panic("in PlanReporter")
		}}, want: panicked},
		"Map": {watch: true, want: panicked},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, watched, tries, log := informer.NewPush("objects"), informer.NewPush("watched"), &journal{}, &strings.Builder{}
				config := test.config
				config.Source, config.Workers, config.Logger = source, 1, logTo(t, log)
				config.Watches = []framework.Watch{{Source: watched, Map: func(context.Context, any) []informer.Key {
					if test.watch {
						panic("in Map")
					}
					return nil
				}}}
				guarded := test.set
				if handles := guarded.Handles; handles != nil {
					guarded.Handles = func(obj any) bool { return !bad(obj) || handles(obj) }
				}
				guarded.InitCtx = onlyBad(bad, guarded.InitCtx)
				config.InitCtx = onlyBad(bad, config.InitCtx)
				guarded.Resources = []framework.Resource{&resource{name: "r", created: func(_ context.Context, obj any) error {
					tries.add(obj.(*corev1.ConfigMap).Name)
					if bad(obj) {
						return errors.New("boom")
					}
					return nil
				}}}
				config.ResourceRouter = routerOf(t, guarded)
				f := newFramework(t, config)
				stop := running(t, f)
				synctest.Wait()
				put(t, source, configMap("bad"))
				put(t, watched, configMap("other"))
				synctest.Wait()
				time.Sleep(10*time.Minute + time.Second) // retries of the bad one
				put(t, source, configMap("good"))
				synctest.Wait()
				stop()

				if got := tries.all(); !config.PlanOnly && (len(got) == 0 || got[len(got)-1] != "good") {
					t.Errorf("the good one was not reconciled: %v\n%s", got, log)
				}
				if config.InitCtx == nil && test.set.Handles == nil && test.set.InitCtx == nil && !config.PlanOnly && len(tries.all()) < 3 {
					t.Errorf("the bad one was not tried again: %v", tries.all())
				}
				if !strings.Contains(log.String(), test.want) || !strings.Contains(log.String(), `"stack":`) {
					t.Errorf("the log lacks %q, or a stack:\n%s", test.want, log)
				}
			})
		})
	}
}

// onlyBad is initCtx for the bad object only.
func onlyBad(bad func(any) bool, initCtx func(context.Context, any) (context.Context, error)) func(context.Context, any) (context.Context, error) {
	if initCtx == nil {
		return nil
	}
	return func(ctx context.Context, obj any) (context.Context, error) {
		if bad(obj) {
			return initCtx(ctx, obj)
		}
		return ctx, nil
	}
}

func TestR4APanicOfTheCRDClientIsAnErrorOfRun(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "things"}}
	config := framework.Config{Source: informer.NewPush("objects"), CRD: crd, CRDClient: bombs{}}
	err := newFramework(t, config, &resource{name: "r"}).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "bombs.EnsureCreated (callbacks_test.go:") {
		t.Errorf("Run: got error %v, want that of the panic", err)
	}
}

func TestR4AnInformerThatPanicsIsWatchedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &strings.Builder{}
		f := newFramework(t, framework.Config{Informer: bombs{}, Logger: logTo(t, log)}, &resource{name: "r"})
		stop := running(t, f)
		time.Sleep(time.Minute)
		stop()
		if again := strings.Count(log.String(), "bombs.Watch (callbacks_test.go:"); again < 2 {
			t.Errorf("it was watched %d times:\n%s", again, log)
		}
	})
}
