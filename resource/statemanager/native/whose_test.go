package native_test

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native"
)

// elsewhere reads the namespaces of another API server.
type elsewhere struct {
	client.Reader
	namespaces client.Reader
}

func (e elsewhere) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if obj.GetObjectKind().GroupVersionKind().Kind == "Namespace" {
		return e.namespaces.Get(ctx, key, obj, opts...)
	}
	return e.Reader.Get(ctx, key, obj, opts...)
}

func scopeOf(operator string, former ...string) *identity.Scope {
	return &identity.Scope{Identity: identity.Identity{Operator: operator, Framework: "statemanager-native", FormerOperators: former}}
}

// refusals computes a set, and wants each service to be told as another one's, and nothing to be written.
func (w *world) refusals(name string, says ...string) {
	w.t.Helper()
	w.requests.drain()
	work, err := w.compute(name)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, o := range work.Operations {
		if len(o.Changes) > 0 || o.Err == nil {
			w.t.Errorf("%s is not refused: %v", o.Service, o.Changes)
		}
	}
	if len(work.Services) != 2 {
		w.t.Errorf("the states are %+v", work.Services)
	}
	for _, state := range work.Services {
		resolved := metav1.Condition{}
		for _, c := range state.Conditions {
			if c.Type == native.ConditionResolved {
				resolved = c
			}
		}
		for _, text := range says {
			if state.State != v1alpha1.ServiceStateFailed || !strings.Contains(state.FailureMessage, text) || resolved.Reason != native.ReasonConflict {
				w.t.Errorf("the state of %s does not say %q: %s, %s", state.Name, text, state.FailureMessage, resolved.Reason)
			}
		}
	}
	for _, request := range w.requests.drain() {
		if !strings.HasPrefix(request, "GET ") {
			w.t.Errorf("it was written: %s", request)
		}
	}
}

// TestR16OneOfTwoOperatorsHasAServiceAndTheOtherSaysWhose has two operators of other names, and two management clusters, beside each
// other on one target cluster.
func TestR16OneOfTwoOperatorsHasAServiceAndTheOtherSaysWhose(t *testing.T) {
	w := newPlatform(t)
	w.useEast()
	w.charts(map[string][]byte{"app-1.0.0.tgz": chartOf(t, "app", "1.0.0", nil)})
	w.manifests("files", configMapText("one", "1"))
	w.set("a", "east", w.service("app", "app-1.0.0"), w.service("files", "files"))
	w.scope = scopeOf("one")
	w.settle("a", "app Deployed, files Deployed")
	uid := w.onEast("one").UID

	w.scope = scopeOf("two")
	w.restart()
	for range 3 {
		w.refusals("a", `framework "statemanager-native" of operator "one"`)
	}
	w.scope = scopeOf("one")
	w.config.Management = elsewhere{w.client, w.east}
	w.restart()
	w.refusals("a", `framework "statemanager-native" of operator "one"`, "at work for the management cluster")
	w.config.Management = w.client
	w.restart()
	w.quiet("a")

	// A renamed operator has what the former one had, as it is.
	w.scope = scopeOf("two", "one")
	w.restart()
	work, err := w.compute("a")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range work.Operations {
		if len(o.Changes) == 0 || !strings.Contains(o.Changes[0].Description, "taken over from") {
			t.Errorf("the plan of %s says %+v", o.Service, o.Changes)
		}
	}
	w.settle("a", "app Deployed, files Deployed")
	w.scope = scopeOf("two")
	w.restart()
	w.quiet("a")
	if is := w.onEast("one").UID; is != uid {
		t.Error("it was made anew")
	}
}
