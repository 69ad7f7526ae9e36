package serviceprovider_test

import (
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider"
)

func TestEachRequestOfTheRuntimeEndsWithTheTimeout(t *testing.T) {
	allPlanes(t)
	type preparation = func(w *world, r *reconciler, request ctrl.Request)
	granted := func(w *world, r *reconciler, request ctrl.Request) { settle(w.t, r, request) }
	deleted := func(w *world, r *reconciler, request ctrl.Request) {
		settle(w.t, r, request)
		w.delete("db")
	}
	on := func(resource, verb, subresource string) operatortest.Match {
		return func(r operatortest.Request) bool {
			return r.Resource == resource && r.Verb == verb && r.Subresource == subresource
		}
	}
	for name, c := range map[string]struct {
		prepare preparation
		role    string
		hangs   operatortest.Match
	}{
		"reading the object":          {nil, onboarding, on("postgreses", "get", "")},
		"adding finalizers":           {nil, onboarding, on("postgreses", "patch", "")},
		"reading the config":          {nil, platform, on("providerconfigs", "get", "")},
		"asking for access":           {nil, platform, on("accessrequests", "create", "")},
		"writing the status":          {nil, onboarding, on("postgreses", "patch", "status")},
		"the author's own":            {granted, mcp, on("configmaps", "patch", "")},
		"the config of a deletion":    {deleted, platform, on("providerconfigs", "get", "")},
		"taking finalizers off":       {deleted, onboarding, on("postgreses", "patch", "")},
		"taking access away":          {deleted, platform, on("accessrequests", "delete", "")},
		"the status of a deletion":    {func(w *world, r *reconciler, request ctrl.Request) { deleted(w, r, request); w.faults[mcp].Cut() }, onboarding, on("postgreses", "patch", "status")},
		"abandoning a request":        {func(w *world, r *reconciler, request ctrl.Request) { deleted(w, r, request); w.letGoOf(mcp) }, platform, on("accessrequests", "patch", "")},
		"asking whether it is there":  {func(w *world, r *reconciler, request ctrl.Request) { deleted(w, r, request); w.letGoOf("") }, mcp, on("namespaces", "get", "")},
		"dropping what was asked for": {func(w *world, r *reconciler, request ctrl.Request) { settle(w.t, r, request); w.again() }, onboarding, on("postgreses", "patch", "")},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.configure(ProviderConfigSpec{})
			w.access.through = w.throughFaults
			patient, request := w.build(), w.order("db", 3)
			if c.prepare != nil {
				c.prepare(w, patient, request)
			}
			r := w.build(func(b *builder) { b.Timeout(time.Second) })
			released := make(chan struct{})
			defer close(released)
			rule := w.faults[c.role].On(c.hangs, operatortest.DelayUntil(released))
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for rule.Hits() == 0 && t.Context().Err() == nil { // what comes before may take all of the time
					_, _ = r.Reconcile(t.Context(), request) // most end with an error; a cluster that was let go does not
				}
			}()
			operatortest.Eventually(t, "the reconciliation ends", func() bool {
				select {
				case <-ended:
					return true
				default:
					return false
				}
			})
		})
	}
}

// letGoOf says that the MCP of the object is gone for good, and has the cluster of a role not answer.
func (w *world) letGoOf(role string) {
	w.t.Helper()
	w.annotate("db", `"`+serviceprovider.LetGoAnnotation+`":"mcp"`)
	if role != "" {
		w.faults[role].Cut()
	}
}

// again asks for a reconciliation.
func (w *world) again() {
	w.t.Helper()
	w.annotate("db", `"`+serviceprovider.OperationAnnotation+`":"`+serviceprovider.OperationReconcile+`"`)
}
