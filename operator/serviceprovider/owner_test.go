package serviceprovider_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/operator/serviceprovider"
)

// heldBy are the finalizers of an operator on a Postgres.
func heldBy(operator string) []string {
	of := func(framework string) string {
		return identity.Identity{Operator: operator, Framework: framework}.Finalizer()
	}
	return []string{of("Postgres.services.example.com"), of("Postgres.services.example.com-access")}
}

// finalizers returns those of a Postgres, sorted.
func (w *world) finalizers(name string) []string {
	w.t.Helper()
	return slices.Sorted(slices.Values(w.get(name).Finalizers))
}

func TestR16TwoProvidersOfOneKindHaveFinalizersOfTheirOwn(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{Version: "1"})
	a := w.build(func(b *builder) { b.Operator("a") })
	b := w.build(func(b *builder) { b.Operator("b") })
	request := w.order("db", 1)
	for _, r := range []*reconciler{a, b} {
		settle(t, r, request)
	}
	if got, want := w.finalizers("db"), slices.Sorted(slices.Values(append(heldBy("a"), heldBy("b")...))); !slices.Equal(got, want) {
		t.Fatalf("the finalizers are %q, want %q", got, want)
	}
	w.delete("db")
	settle(t, a, request)
	if got := w.finalizers("db"); !slices.Equal(got, slices.Sorted(slices.Values(heldBy("b")))) {
		t.Errorf("when a is done the finalizers are %q, want those of b", got)
	}
	w.patch(onboarding, w.named("db"), `{"metadata":{"finalizers":null}}`)
}

func TestR16FinalizersOfFormerNamesAreTakenOver(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{Version: "1"})
	former := w.build(func(b *builder) { b.Operator("a") })
	renamed := w.build(func(b *builder) { b.Operator("b", "a") })
	stays, goes := w.order("stays", 1), w.order("goes", 1)
	settle(t, former, stays)
	settle(t, former, goes)
	w.delete("goes")
	settle(t, renamed, stays)
	if got := w.finalizers("stays"); !slices.Equal(got, slices.Sorted(slices.Values(heldBy("b")))) {
		t.Errorf("the finalizers are %q, want those of b", got)
	}
	settle(t, renamed, goes)
	if w.has(onboarding, w.named("goes")) {
		t.Error("what is being deleted under a former name stays")
	}
	if w.isThere(mcp, "goes") {
		t.Error("it was not cleaned up")
	}
}

// Each of two providers has something of its own for an object, and what they say of it differs.
func TestR16OneOfTwoProvidersWritesTheStatusOfAnObjectAndTheOtherSaysWhose(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{Version: "1"})
	a := w.build(func(b *builder) { b.Operator("a") })
	b := w.build(func(b *builder) { b.Operator("b") })
	request := w.order("db", 1)
	settle(t, a, request)
	w.tells("db", "Ready/True/Ready")
	version := w.get("db").ResourceVersion
	w.author.createOrUpdate = func(_ context.Context, obj *Postgres, _ *ProviderConfig, _ clusterCtx) (ctrl.Result, error) {
		serviceprovider.StatusProgressing(obj, "Slow", "in a while")
		return ctrl.Result{}, nil
	}
	settle(t, b, request)
	w.tells("db", "Ready/True/Ready")
	if !w.events.told("StatusClaimed", `the status is written by framework "Postgres.services.example.com" of operator "a"`) {
		t.Errorf("no event says whose the status is: %v", w.events.all)
	}
	if version == w.get("db").ResourceVersion {
		t.Error("b has not put its finalizers on it")
	}

	// What became of the first one is its successor's, and what it has left is for whoever is there.
	renamed := w.build(func(b *builder) { b.Operator("c", "a") })
	settle(t, renamed, request)
	w.tells("db", "Progressing/False/Slow")
	if by := w.get("db").Annotations["operatorkit.io/claimed-by"]; !strings.Contains(by, `operator "c"`) {
		t.Errorf("the status is claimed by %q", by)
	}
	w.patch(onboarding, w.named("db"), `{"metadata":{"annotations":{"operatorkit.io/claimed-by":null}}}`)
	w.author.createOrUpdate = deploy
	settle(t, b, request)
	w.tells("db", "Ready/True/Ready")
	w.patch(onboarding, w.named("db"), `{"metadata":{"finalizers":null}}`)
}
