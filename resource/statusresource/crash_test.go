package statusresource_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// run runs an operator of pages in a namespace.
func run(ctx context.Context, t testing.TB, cfg *rest.Config, namespace, name string, resources func(client.Client) []framework.Resource) error {
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: newScheme(t)})
	if err != nil {
		return err
	}
	source, err := informer.NewKubernetes(informer.KubernetesConfig{
		Name: "pages", Client: c, Object: &page{}, Logger: quiet(t), Namespaces: []string{namespace},
	})
	if err != nil {
		return err
	}
	f, err := framework.New(framework.Config{
		Operator: name, Name: "pages", Source: source, Logger: quiet(t), Resources: resources(c), ShutdownTimeout: time.Second,
		BackOffFactory: func() backoff.BackOff { return backoff.NewConstantBackOff(10 * time.Millisecond) },
	})
	if err != nil {
		return err
	}
	return f.Run(ctx)
}

// told is a condition: the status of a page is this, of its newest generation.
func told(name string, want ...string) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		p := &page{}
		if err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, p); err != nil {
			return err
		}
		if diff := cmp.Diff(want, lines(p)); diff != "" {
			return errors.New(diff)
		}
		return nil
	}
}

func patched(name, document string) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		p := &page{}
		p.Namespace, p.Name = namespace, name
		return user.Patch(ctx, p, client.RawPatch("application/merge-patch+json", []byte(document)))
	}
}

func TestTheStatusSurvivesACrashAtEveryWrite(t *testing.T) {
	server := operatortest.Start(t)
	server.InstallCRDs(t, pages)
	failed := `resource "work": ensure created: it failed: no quota`
	p := &page{Spec: pageSpec{Reconciling: "soon"}}
	p.Name = "home"
	beside := func(name string, change func(*config)) func(context.Context, *rest.Config, string) error {
		return func(ctx context.Context, cfg *rest.Config, namespace string) error {
			return run(ctx, t, cfg, namespace, name, func(c client.Client) []framework.Resource {
				return []framework.Resource{&work{}, newStatus(t, c, quiet(t), change)}
			})
		}
	}
	operatortest.BreakAtEveryWrite(t, operatortest.Scenario{
		Name: "status", Scheme: newScheme(t), Config: server.RESTConfig(), Parallel: 4,
		Start:     beside("first", func(*config) {}),
		Neighbour: beside("second", func(c *config) { c.Prefix, c.Set = "Second", nil }),
		Phases: []operatortest.Phase{
			{Name: "create", Do: operatortest.Create(p), Until: told("home", "Ready=False Starting: soon", "Reconciling=True Starting: soon", "SecondReady=True Reconciled")},
			{Name: "fail", Do: patched("home", `{"spec":{"fails":"no quota","permanently":true}}`), Until: told("home",
				"Ready=False Failed: "+failed, "SecondReady=False Failed: "+failed, "SecondStalled=True Failed: "+failed, "Stalled=True Failed: "+failed)},
			{Name: "mend", Do: patched("home", `{"spec":{"fails":null,"reconciling":null}}`), Until: told("home", "Ready=True Reconciled", "SecondReady=True Reconciled")},
			{Name: "delete", Do: operatortest.Delete(p), Until: operatortest.Gone(p)},
		},
		Objects: []client.Object{&page{}},
		// Two write, one before the other or after it.
		Normalize: func(u *unstructured.Unstructured) {
			u.SetManagedFields(nil)
			u.SetFinalizers(slices.Sorted(slices.Values(u.GetFinalizers())))
			conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
			slices.SortFunc(conditions, func(a, b any) int {
				return strings.Compare(a.(map[string]any)["type"].(string), b.(map[string]any)["type"].(string))
			})
			_ = unstructured.SetNestedSlice(u.Object, conditions, "status", "conditions")
		},
	})
}

// Each retry fails in other words, and each write of the status is an event that has the page reconciled at once.
func TestNoErrorMakesAStormOfWrites(t *testing.T) {
	k := newKit(t)
	p := k.page("home", pageSpec{Fails: "no answer"})
	var tries atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, t, k.faults.Wrap(k.server.RESTConfig()), k.namespace, "storm", func(c client.Client) []framework.Resource {
			text := func(s string) string {
				n := tries.Add(1)
				return fmt.Sprintf("%s %d %s", s, n, strings.Repeat("!", int(n)))
			}
			return []framework.Resource{&work{text: text}, newStatus(t, c, quiet(t))}
		})
	}()
	operatortest.Eventually(t, "it was tried fifty times", func() bool { return tries.Load() >= 50 })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	writes := 0
	for _, w := range k.faults.Writes() {
		if w.Subresource == "status" && w.Status == http.StatusOK { // a retry that comes before the event of the write ends in a conflict
			writes++
		}
	}
	if writes != 1 {
		t.Errorf("%d writes of the status of %s", writes, p.Name)
	}
}

// The plan of a status is what is written then, whatever there is.
func TestThePlanIsWhatIsDoneThen(t *testing.T) {
	k := newKit(t)
	n := 0
	words := rapid.SampledFrom([]string{"", "a", "b"})
	rapid.Check(t, func(rt *rapid.T) {
		n++
		p := k.page(fmt.Sprintf("p%d", n), pageSpec{})
		for range 3 {
			p = k.edit(p, fmt.Sprintf(`{"spec":{"text":%q,"reconciling":%q,"stalled":%q}}`, words.Draw(rt, "text"), words.Draw(rt, "reconciling"), words.Draw(rt, "stalled")))
			if rapid.Bool().Draw(rt, "edited") {
				p = k.editStatus(p, func(s *pageStatus) {
					s.URL = words.Draw(rt, "url")
					for i := range s.Conditions {
						s.Conditions[i].Message = words.Draw(rt, "message")
					}
				})
			}
			before, resources := k.read(p), []framework.Resource{k.status()}
			count := k.faults.Count()
			made, err := framework.PlanUpdate(t.Context(), before, resources)
			if err != nil || k.faults.Count() > count {
				rt.Fatalf("planning wrote, or failed: %v", err)
			}
			if err := framework.ProcessUpdate(t.Context(), before, resources); err != nil {
				rt.Fatal(err)
			}
			after := k.read(p)
			want := map[string]string{}
			for _, f := range made.Resources[0].Changes {
				for _, field := range f.Fields {
					want[field.Path] = fmt.Sprint(field.New)
				}
			}
			if diff := cmp.Diff(want, difference(before, after)); diff != "" {
				rt.Fatalf("the plan differs from what was done (-plan +done):\n%s", diff)
			}
			left, err := framework.PlanUpdate(t.Context(), after, resources)
			if err != nil || left.Counts().Any() {
				rt.Fatalf("left to do: %v, %v", left, err)
			}
		}
	})
}

// difference is what has changed in a status, in the words of a plan.
func difference(before, after *page) map[string]string {
	was, is := said(before), said(after)
	changed := map[string]string{}
	for path := range was {
		if is[path] == "" {
			changed[path] = "<nil>"
		}
	}
	for path, text := range is {
		if was[path] != text {
			changed[path] = text
		}
	}
	return changed
}

func said(p *page) map[string]string {
	said := map[string]string{"status.observedGeneration": fmt.Sprint(p.Status.ObservedGeneration), "status.url": p.Status.URL}
	for _, c := range p.Status.Conditions {
		said["status.conditions["+c.Type+"]"] = strings.TrimSpace(fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message))
	}
	return said
}
