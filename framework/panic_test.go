package framework_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
)

func TestR4AResourceThatPanicsDoesNotStopTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := informer.NewPush("objects")
		done, log := &journal{}, &strings.Builder{}
		f := newFramework(t, framework.Config{Source: source, Workers: 1, BackOffFactory: everyMinute, Logger: logTo(t, log)},
			&resource{name: "r", created: func(_ context.Context, obj any) error {
				name := obj.(*corev1.ConfigMap).Name
				done.add(name)
				if name == "panics" {
					panic("at the disco")
				}
				return nil
			}})
		stop := running(t, f)
		for _, name := range []string{"panics", "works"} {
			put(t, source, configMap(name))
			time.Sleep(time.Second)
		}
		time.Sleep(90 * time.Second)
		stop()

		if diff := cmp.Diff([]string{"panics", "works", "panics"}, done.all()); diff != "" {
			t.Errorf("reconciliations (-want +got):\n%s", diff)
		}
		for _, want := range []string{"panic: value of type string in github.com/operatorkit/operatorkit/", "panic_test.go", `"object":"ConfigMap default/panics"`, `"step":"ensure_created"`, `"retry":"1m0s"`} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log lacks %q:\n%s", want, log)
			}
		}
	})
}

// fragile is an object whose copy can't be made.
type fragile struct{ *corev1.ConfigMap }

func (f fragile) DeepCopyObject() k8sruntime.Object {
	if f.Name == "bad" {
		panic("can't copy")
	}
	return fragile{f.DeepCopy()}
}

func TestR4PanicOfTheAuthorsCodeAnywhereIsAnErrorOfItsObject(t *testing.T) {
	bad := func(obj any) bool { return obj.(interface{ GetName() string }).GetName() == "bad" }
	for name, set := range map[string]framework.ResourceSetConfig{
		"Handles": {Handles: func(obj any) bool {
			if bad(obj) {
				panic("in Handles")
			}
			return true
		}},
		"InitCtx": {InitCtx: func(ctx context.Context, obj any) (context.Context, error) {
			if bad(obj) {
				panic("in InitCtx")
			}
			return ctx, nil
		}},
		"DeepCopyObject": {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, done, log := informer.NewPush("objects"), &journal{}, &strings.Builder{}
				set.Resources = []framework.Resource{&resource{name: "r", created: func(_ context.Context, obj any) error {
					done.add(obj.(interface{ GetName() string }).GetName())
					return nil
				}}}
				f := newFramework(t, framework.Config{Source: source, Workers: 1, Logger: logTo(t, log), ResourceRouter: routerOf(t, set)})
				stop := running(t, f)
				put(t, source, fragile{configMap("bad")})
				synctest.Wait()
				put(t, source, fragile{configMap("good")})
				synctest.Wait()
				stop()

				if diff := cmp.Diff([]string{"good"}, done.all()); diff != "" {
					t.Errorf("reconciled (-want +got):\n%s", diff)
				}
				for _, want := range []string{"default/bad", "panic: ", `"stack":`} {
					if !strings.Contains(log.String(), want) {
						t.Errorf("the log lacks %q:\n%s", want, log)
					}
				}
			})
		})
	}
}

// TestR4AnErrorThatCantBeReadStopsNothing has a resource return a nil pointer as its error.
func TestR4AnErrorThatCantBeReadStopsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, tried, log := informer.NewPush("objects"), &journal{}, &strings.Builder{}
		f := newFramework(t, framework.Config{Source: source, Workers: 1, BackOffFactory: everyMinute, Logger: logTo(t, log)},
			&resource{name: "r", created: func(_ context.Context, obj any) error {
				name := obj.(*corev1.ConfigMap).Name
				tried.add(name)
				if name == "bad" {
					return (*framework.StepError)(nil)
				}
				return nil
			}})
		stop := running(t, f)
		put(t, source, configMap("bad"))
		synctest.Wait()
		put(t, source, configMap("good"))
		time.Sleep(90 * time.Second)
		stop()

		if diff := cmp.Diff([]string{"bad", "good", "bad"}, tried.all()); diff != "" {
			t.Errorf("reconciliations (-want +got):\n%s", diff)
		}
		for _, want := range []string{"default/bad", "panic: ", `"stack":`} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log lacks %q:\n%s", want, log)
			}
		}
	})
}
