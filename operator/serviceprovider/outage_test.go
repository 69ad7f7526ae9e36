package serviceprovider_test

import (
	"context"
	"testing"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// TestMCPThatIsDownHoldsUpItsOwnObjectsOnly kills the API server of an MCP. What is in other MCPs goes on, with a single worker; what
// is in this one says what it waits for, in a change and in a deletion, and recovers by itself.
func TestMCPThatIsDownHoldsUpItsOwnObjectsOnly(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{Version: "16"})
	w.access.place = func(name, id string) string {
		if name == "elsewhere" {
			return workload
		}
		return id
	}
	w.run(w.build(func(b *builder) { b.Workers(1) }))
	for _, name := range []string{"db", "gone", "elsewhere"} {
		w.order(name, 3)
	}
	for _, name := range []string{"db", "gone", "elsewhere"} {
		w.eventuallyTells(name, "Ready/True/Ready")
	}

	if err := planes[mcp].kube.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := planes[mcp].kube.Resume(context.Background()); err != nil {
			t.Error(err)
		}
	})
	w.patch(onboarding, w.named("db"), `{"spec":{"size":5}}`)
	w.delete("gone")
	w.eventuallyTells("db", "Progressing/False/ClusterUnreachable", `waits for the cluster "mcp" to answer`)
	w.eventuallyTells("gone", "Terminating/False/ClusterUnreachable", `waits for the cluster "mcp" to answer`)
	w.patch(onboarding, w.named("elsewhere"), `{"spec":{"size":5}}`)
	operatortest.Eventually(t, "the change is in the other MCP", func() bool { return w.data(workload, "elsewhere")["size"] == "5" })
	w.eventuallyTells("elsewhere", "Ready/True/Ready")
	w.order("late", 3)
	w.eventuallyTells("late", "Progressing/False/ClusterUnreachable")

	if err := planes[mcp].kube.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"db", "late"} {
		w.eventuallyTells(name, "Ready/True/Ready")
	}
	if got := w.data(mcp, "db")["size"]; got != "5" {
		t.Errorf("the MCP has size %q, want what was asked for while it was down", got)
	}
	w.eventuallyGone("gone")
	if w.isThere(mcp, "gone") {
		t.Error("what was deleted while the MCP was down is still there")
	}
}
