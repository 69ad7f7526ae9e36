package serviceprovider_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/context/reconciliationcanceledcontext"
	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/inspector"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider"
)

// withResources has the provider made of resource sets, in the MCP and the workload cluster.
func (w *world) withResources(sets ...framework.ResourceSetConfig) *reconciler {
	w.t.Helper()
	return w.build(w.withWorkload, func(b *builder) { b.Reconciler(madeOf(w.t, sets...)) })
}

func TestResourcesServeAnObjectInAllItsClusters(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{Version: "16"})
	r, request := w.withResources(version1(t)), w.order("db", 3)
	settle(t, r, request)
	w.tells("db", "Ready/True/Ready")
	want := map[string]string{"size": "3", "version": "16"}
	for _, role := range []string{mcp, workload} {
		if diff := cmp.Diff(want, w.data(role, "db")); diff != "" {
			t.Errorf("in the %s (-want +got):\n%s", role, diff)
		}
	}
	if got := w.get("db").Endpoint; got != "db.example.com" {
		t.Errorf("what a resource has put into the status is %q", got)
	}
	w.delete("db")
	settle(t, r, request)
	if w.has(onboarding, w.named("db")) || w.isThere(mcp, "db") || w.isThere(workload, "db") {
		t.Error("something is left")
	}
}

func TestResourcesCleanUpTheClustersThatAreThereWithoutTheOneThatIsLetGo(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{Version: "16"})
	r, request := w.withResources(version1(t)), w.order("db", 3)
	settle(t, r, request)
	w.access.through = w.throughFaults
	w.faults[mcp].Cut()
	w.annotate("db", `"`+serviceprovider.LetGoAnnotation+`":"mcp"`)
	w.delete("db")
	settle(t, r, request)
	if w.has(onboarding, w.named("db")) || w.isThere(workload, "db") {
		t.Error("the object, or what it had in the workload cluster, is left")
	}
}

func TestResourcesTellWhatTheyWaitFor(t *testing.T) {
	broken := errors.New("out of disks")
	for name, test := range map[string]struct {
		set          framework.ResourceSetConfig
		annotations  string
		do           signal
		update, gone string
		err          error
	}{
		"no resource set": {set: framework.ResourceSetConfig{Handles: func(any) bool { return false }}, update: "NoResourceSet", gone: "ReconcileFailed", err: framework.ErrNoResourceSet},
		"canceled":        {do: func(ctx context.Context) error { reconciliationcanceledcontext.SetCanceled(ctx); return nil }, update: "Canceled", gone: "DeletionWaits"},
		"finalizer kept":  {do: func(ctx context.Context) error { finalizerskeptcontext.SetKept(ctx); return nil }, update: "Ready", gone: "DeletionWaits"},
		"looked at again": {do: func(ctx context.Context) error { requeuecontext.SetAfter(ctx, time.Hour); return nil }, update: "Progressing", gone: "AccessLeaving"},
		"only planned":    {annotations: `"` + framework.PlanAnnotation + `":"true"`, update: "Planned", gone: "Planned"},
		"failed":          {do: func(context.Context) error { return broken }, update: "ReconcileFailed", gone: "ReconcileFailed", err: broken},
		"with its own words": {do: func(ctx context.Context) error {
			obj, _ := serviceprovider.ObjectFrom[*Postgres](ctx)
			serviceprovider.StatusProgressing(obj, "NoDisks", "waits for disks")
			reconciliationcanceledcontext.SetCanceled(ctx)
			return nil
		}, update: "NoDisks", gone: "NoDisks"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.configure(ProviderConfigSpec{Version: "16"})
			if test.do == nil {
				test.do = func(context.Context) error { return nil }
			}
			test.set.Resources = []framework.Resource{test.do, crud(t, inMCP(""))}
			r := w.build(func(b *builder) { b.Reconciler(madeOf(t, test.set)) })
			request := w.order("db", 3)
			if test.annotations != "" {
				w.annotate("db", test.annotations)
			}
			w.reconciled(r, request, test.update, test.err)
			if planned := test.annotations != ""; planned && w.isThere(mcp, "db") {
				t.Error("what is only planned was done")
			}
			w.delete("db")
			w.reconciled(r, request, test.gone, test.err)
		})
	}
}

// reconciled reconciles once and requires an error and a reason of the condition Ready; the reason of an object that is gone is
// empty.
func (w *world) reconciled(r *reconciler, request ctrl.Request, reason string, want error) {
	w.t.Helper()
	if _, err := r.Reconcile(w.t.Context(), request); !errors.Is(err, want) && reason == "ReconcileFailed" || err != nil && reason != "ReconcileFailed" {
		w.t.Errorf("the error is %v, want %v", err, want)
	}
	if !w.has(onboarding, w.named("db")) {
		if reason != "" {
			w.t.Errorf("the object is gone; it should say %s", reason)
		}
		return
	}
	if p := w.get("db"); !strings.HasSuffix(told(p), "/"+reason) {
		w.t.Errorf("the status says %s (%s), want %s", told(p), messageOf(p), reason)
	}
}

func TestPlanOfAnObjectShowsWhatWouldChangeInItsClusters(t *testing.T) {
	w := newWorld(t)
	r := w.withResources(version1(t))
	f := w.framework(r, framework.Config{})
	request := w.order("db", 3)
	w.planSays(f, request, `waits for the ProviderConfig `+w.namespace)
	w.configure(ProviderConfigSpec{Version: "16"})
	w.planSays(f, request, "waits for access to the mcp cluster: there is no access request yet")
	settle(t, r, request)
	w.planSays(f, request, "0 to create, 0 to update, 0 to delete")

	w.patch(platform, w.config(ProviderConfigSpec{}), `{"spec":{"version":"17"}}`)
	before := w.writes()
	w.planSays(f, request, "0 to create, 2 to update, 0 to delete", "  mcp\n    ~ ConfigMap", "  workload\n    ~ ConfigMap", `data.version: "16" -> "17"`)
	w.delete("db")
	w.planSays(f, request, "0 to create, 0 to update, 2 to delete")
	if after := w.writes(); after != before {
		t.Errorf("planning has written %d times", after-before)
	}
	if got := w.data(mcp, "db")["version"]; got != "16" {
		t.Errorf("the MCP has version %q after a plan", got)
	}
	settle(t, r, request)
	if w.has(onboarding, w.named("db")) || w.isThere(mcp, "db") {
		t.Error("something is left")
	}
}

// writes counts what the provider has written, by whatever way.
func (w *world) writes() int {
	n := 0
	for _, faults := range w.faults {
		n += faults.Count()
	}
	return n
}

// planSays waits for a plan with these texts: the framework sees objects a moment later than their users.
func (w *world) planSays(f *framework.Framework, request ctrl.Request, parts ...string) {
	w.t.Helper()
	operatortest.Eventually(w.t, fmt.Sprintf("the plan says %q", parts), func() error {
		p, err := f.Plan(w.t.Context(), request.NamespacedName)
		if err != nil {
			if apierrors.IsNotFound(err) {
				return err
			}
			w.t.Fatal(err)
		}
		var text bytes.Buffer
		if err := plan.WriteText(&text, []*plan.Plan{p}, plan.TextOptions{}); err != nil {
			w.t.Fatal(err)
		}
		said := text.String() + p.Counts().String() + p.Reason
		for _, part := range parts {
			if !strings.Contains(said, part) {
				return fmt.Errorf("it lacks %q:\n%s", part, said)
			}
		}
		return nil
	})
}

func TestPlanLeavesAloneWhatAReconciliationWould(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{Version: "16"})
	r := w.withResources(version1(t))
	f := w.framework(r, framework.Config{})
	request := w.order("db", 3)
	w.annotate("db", `"`+serviceprovider.OperationAnnotation+`":"ignore"`)
	w.planSays(f, request, "cancels the reconciliation", "0 to create, 0 to update, 0 to delete")
}

// TestShadowOfAProviderIsComparedAcrossClusters: the next version of a provider runs beside the one in charge.
func TestShadowOfAProviderIsComparedAcrossClusters(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{Version: "16"})
	r := w.withResources(version1(t), version2(t))
	f := w.framework(r, framework.Config{})
	request := w.order("db", 3)
	settle(t, r, request)
	operatortest.Eventually(t, "the shadow was compared", func() error {
		summary := f.Shadows()[0].String()
		if summary != "v2 would change 1 of 1 object" {
			return errors.New(summary)
		}
		return nil
	})
	places := []plan.PlaceCount{{Place: plan.Place{Resource: mcp, Kind: "ConfigMap", Path: "data.version"}, Objects: 1}}
	if diff := cmp.Diff(places, f.Shadows()[0].Places); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
	if got := w.data(mcp, "db")["version"]; got != "16" {
		t.Errorf("the MCP has version %q: the shadow was carried out", got)
	}
}

func TestPageShowsWhatAProviderDid(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{Version: "16"})
	page, err := inspector.New(inspector.Config{Name: "postgres", Logger: quiet(t)})
	if err != nil {
		t.Fatal(err)
	}
	r := w.withResources(version1(t))
	page.Watch(w.framework(r, framework.Config{Name: "postgres", Observer: page}))
	settle(t, r, w.order("db", 3))

	server := httptest.NewServer(page)
	defer server.Close()
	answer, err := server.Client().Get(server.URL + inspector.Path + "api/v1/object?framework=postgres&namespace=" + w.namespace + "&name=db")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"success"`, `"mcp"`, `"workload"`, `"create"`} {
		if !strings.Contains(string(said), part) {
			t.Errorf("the page lacks %s: %s %s", part, answer.Status, said)
		}
	}
}

func TestResourcesAreReconciledWhenWhatTheyReferToChanges(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{Secret: "password", ConfigMap: "settings"})
	looked := make(chan struct{}, 100)
	resources := madeOf(t, framework.ResourceSetConfig{Resources: []framework.Resource{signal(func(context.Context) error {
		looked <- struct{}{}
		return nil
	})}}).
		ReferTo(func(_ context.Context, s *corev1.Secret, config *ProviderConfig) bool {
			return config != nil && s.Name == config.Spec.Secret
		}).
		ReferToConfigMaps(func(_ context.Context, m *corev1.ConfigMap, config *ProviderConfig) bool {
			return config != nil && m.Name == config.Spec.ConfigMap
		})
	w.run(w.build(func(b *builder) {
		b.Reconciler(resources).SecretNamespace(w.namespace).ConfigMapNamespace(w.namespace)
	}))
	w.order("db", 3)
	w.eventuallyTells("db", "Ready/True/Ready")
	for _, o := range []client.Object{&corev1.Secret{ObjectMeta: named("password")}, &corev1.ConfigMap{ObjectMeta: named("settings")}} {
		for len(looked) > 0 {
			<-looked
		}
		w.create(platform, o)
		operatortest.Eventually(t, fmt.Sprintf("%T reconciles the object", o), func() bool { return len(looked) > 0 })
	}
}

func TestFrameworkIsForProvidersThatAreMadeOfResources(t *testing.T) {
	w := newWorld(t)
	if _, err := w.build().Framework(framework.Config{Logger: quiet(t)}); !framework.IsInvalidConfig(err) {
		t.Errorf("the error is %v", err)
	}
	if _, err := w.withResources(version1(t)).Framework(framework.Config{}); !framework.IsInvalidConfig(err) {
		t.Errorf("without a logger the error is %v", err)
	}
	_, err := w.builder().Reconciler(serviceprovider.FromResources[*Postgres, *ProviderConfig](nil)).Build()
	if !framework.IsInvalidConfig(err) || !strings.Contains(err.Error(), "FromResources must be given a router") {
		t.Errorf("without a router the error is %v", err)
	}
}
