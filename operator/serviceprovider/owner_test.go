package serviceprovider_test

import (
	"slices"
	"testing"

	"github.com/operatorkit/operatorkit/framework/identity"
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
