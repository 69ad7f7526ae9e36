package framework_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
)

func TestAResourceThatReturnsRequeueAfterIsCalledAgainAndIsNoError(t *testing.T) {
	again := fmt.Errorf("the certificate is not issued: %w", framework.RequeueAfter(time.Minute))
	for name, make := range map[string]func(calls *journal, times int) framework.Resource{
		"a plain resource": func(calls *journal, times int) framework.Resource {
			call := func(context.Context, any) error {
				if calls.add("called"); len(calls.all()) <= times {
					return again
				}
				return nil
			}
			return &resource{name: "r", created: call, deleted: call}
		},
		"a CRUD resource": func(calls *journal, times int) framework.Resource {
			return crud(t, &ops{name: "r", calls: &journal{}, on: func(_ context.Context, step framework.Step) error {
				if step != framework.StepGetDesiredState {
					return nil
				}
				if calls.add("called"); len(calls.all()) <= times {
					return again
				}
				return nil
			}})
		},
		"one with a wrapper that retries": func(calls *journal, times int) framework.Resource {
			call := func(context.Context, any) error {
				if calls.add("called"); len(calls.all()) <= times {
					return again
				}
				return nil
			}
			return framework.WrapSteps(&resource{name: "r", created: call, deleted: call}, func(ctx context.Context, _ framework.StepInfo, next func(context.Context) error) error {
				if err := next(ctx); err != nil {
					return next(ctx)
				}
				return nil
			})
		},
	} {
		for event, obj := range map[string]any{"update": configMap("a"), "delete": deleting("a")} {
			t.Run(name+", "+event, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source, calls, later, observed := informer.NewPush("objects"), &journal{}, &journal{}, &records{}
					note := func(context.Context, any) error { later.add("later"); return nil }
					f := newFramework(t, framework.Config{Source: source, Observer: observed}, make(calls, 2), &resource{name: "later", created: note, deleted: note})
					defer running(t, f)()
					put(t, source, obj)
					time.Sleep(time.Hour)

					var got []string
					for _, r := range observed.taken() {
						got = append(got, strings.TrimSpace(string(r.Outcome)+" "+r.Error))
					}
					want := []string{"success", "success", "success"}
					if event == "delete" {
						want = []string{"waiting", "waiting", "success"}
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("outcomes (-want +got):\n%s", diff)
					}
					if len(calls.all()) != 3 || len(later.all()) != 3 {
						t.Errorf("it was called %d times, and the next one %d times, want 3 each", len(calls.all()), len(later.all()))
					}
				})
			})
		}
	}
}

func TestRequeueAfterBesideAnErrorIsThatError(t *testing.T) {
	r := &resource{name: "r", created: func(context.Context, any) error {
		return framework.Partial(framework.RequeueAfter(time.Minute), errBoom)
	}}

	err := framework.ProcessUpdate(t.Context(), configMap("a"), []framework.Resource{r})

	if err == nil || !slices.Contains(strings.Fields(err.Error()), "boom") {
		t.Errorf("got %v", err)
	}
}
