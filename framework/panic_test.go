package framework_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
)

func TestR4ResourceThatPanicsOrExitsDoesNotStopTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := informer.NewPush("objects")
		done, log := &journal{}, &strings.Builder{}
		f := newFramework(t, framework.Config{Source: source, Workers: 1, BackOffFactory: everyMinute, Logger: logTo(t, log)},
			&resource{name: "r", created: func(_ context.Context, obj any) error {
				name := obj.(*corev1.ConfigMap).Name
				done.add(name)
				switch name {
				case "panics":
					panic("at the disco")
				case "exits":
					runtime.Goexit()
				}
				return nil
			}})
		stop := running(t, f)
		for _, name := range []string{"panics", "exits", "works"} {
			put(t, source, configMap(name))
			time.Sleep(time.Second)
		}
		time.Sleep(90 * time.Second)
		stop()

		if diff := cmp.Diff([]string{"panics", "exits", "works", "panics", "exits"}, done.all()); diff != "" {
			t.Errorf("reconciliations (-want +got):\n%s", diff)
		}
		for _, want := range []string{"panic: value of type string in github.com/operatorkit/operatorkit/", "panic_test.go", `"object":"ConfigMap default/panics"`, `"step":"ensure_created"`, `"retry":"1m0s"`, "runtime.Goexit"} {
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

// selfish is an error that can't be looked into.
type selfish struct{}

func (selfish) Error() string { return "selfish" }

func (e selfish) Unwrap() error { panic(e) }

// picky is an error that must not be a nil pointer when it is compared.
type picky struct{ text string }

func (p *picky) Error() string { return "picky" }

func (p *picky) Is(error) bool { return p.text == "" }

// unreadableErrors are errors whose methods panic.
func unreadableErrors() map[string]error {
	return map[string]error{
		"a nil StatusError":         (*apierrors.StatusError)(nil),
		"a nil StatusError, joined": errors.Join(errBoom, fmt.Errorf("create: %w", (*apierrors.StatusError)(nil))),
		"a nil RetryAfterError":     (*framework.RetryAfterError)(nil),
		"a nil error with Is":       (*picky)(nil),
		"one that panics by itself": selfish{},
	}
}

// unread is a source that fails to give some objects.
type unread struct {
	*informer.Push
	fail func(name string) error
}

func (u unread) Get(key informer.Key) (obj any, exists bool, err error) {
	if err := u.fail(key.Name); err != nil {
		return nil, false, err
	}
	return u.Push.Get(key)
}

func TestR4AnErrorThatCantBeReadIsAnErrorOfItsObject(t *testing.T) {
	for name, bad := range unreadableErrors() {
		for place, fail := range map[string]struct{ get, initCtx, created func() error }{
			"of a resource":        {created: func() error { return bad }},
			"thrown by a resource": {created: func() error { panic(bad) }},
			"of InitCtx":           {initCtx: func() error { return bad }},
			"of a source":          {get: func() error { return bad }},
			"thrown by a source":   {get: func() error { panic(bad) }},
		} {
			t.Run(name+" "+place, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					tried, done, log := &journal{}, &journal{}, &strings.Builder{}
					failing := func(name string, fail func() error) error {
						if name != "bad" || fail == nil {
							return nil
						}
						tried.add(name)
						return fail()
					}
					source := unread{informer.NewPush("objects"), func(name string) error { return failing(name, fail.get) }}
					set := framework.ResourceSetConfig{
						InitCtx: func(ctx context.Context, obj any) (context.Context, error) {
							return ctx, failing(obj.(*corev1.ConfigMap).Name, fail.initCtx)
						},
						Resources: []framework.Resource{&resource{name: "r", created: func(_ context.Context, obj any) error {
							done.add(obj.(*corev1.ConfigMap).Name)
							return failing(obj.(*corev1.ConfigMap).Name, fail.created)
						}}},
					}
					f := newFramework(t, framework.Config{Source: source, Workers: 1, BackOffFactory: everyMinute, Logger: logTo(t, log), ResourceRouter: routerOf(t, set)})
					stop := running(t, f)
					put(t, source.Push, configMap("bad"))
					synctest.Wait()
					put(t, source.Push, configMap("good"))
					synctest.Wait()
					before := len(tried.all())
					time.Sleep(90 * time.Second)
					stop()

					if before == 0 || len(tried.all()) == before {
						t.Errorf("the object was tried %d times, and then %d times", before, len(tried.all())-before)
					}
					if !slices.Contains(done.all(), "good") {
						t.Error("the other object was not reconciled")
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
}

func TestR4AnErrorThatCantBeReadIsAnErrorForWhoHasNoQueue(t *testing.T) {
	for name, bad := range unreadableErrors() {
		t.Run(name, func(t *testing.T) {
			r := &resource{name: "r", created: func(context.Context, any) error { return bad }}
			_, driven := newFramework(t, framework.Config{Driven: true}, r).ReconcileObject(t.Context(), configMap("a"))
			for caller, err := range map[string]error{
				"ReconcileObject": driven,
				"ProcessUpdate":   framework.ProcessUpdate(t.Context(), configMap("a"), []framework.Resource{r}),
			} {
				var step *framework.StepError
				if !errors.As(err, &step) || step.Resource != "r" || !strings.Contains(err.Error(), "can't be read: panic: ") {
					t.Errorf("%s: got error %v, want that of the resource", caller, err)
				}
			}
		})
	}
}
