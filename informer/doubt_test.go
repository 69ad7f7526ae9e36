package informer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// TestR11AnAnswerThatSomebodyElseMayHaveMadeWakes writes in each way while the watch is held: what has not made for sure the version that it is
// answered with, is a reason to reconcile.
func TestR11AnAnswerThatSomebodyElseMayHaveMadeWakes(t *testing.T) {
	type write func(ctx context.Context, c client.Client, seen *policyv1.PodDisruptionBudget) error
	patch := func(form types.PatchType, document string) write {
		return func(ctx context.Context, c client.Client, seen *policyv1.PodDisruptionBudget) error {
			document := strings.NewReplacer("UID", string(seen.UID), "VERSION", seen.ResourceVersion, "NAME", seen.Name).Replace(document)
			return c.Patch(ctx, seen, client.RawPatch(form, []byte(document)), client.FieldOwner("test"))
		}
	}
	merge := func(document string) write { return patch(types.MergePatchType, document) }
	ops := func(document string) write { return patch(types.JSONPatchType, document) }
	apply := func(metadata string) write {
		return patch(types.ApplyPatchType, fmt.Sprintf(`{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"NAME",%s}}`, metadata))
	}
	tests := map[string]struct {
		write write
		// foreign is true if somebody else has changed the object, which the watch does not show yet.
		foreign bool
		wakes   int64
	}{
		"a merge patch that changes nothing":              {write: merge(`{"metadata":{"uid":"UID"}}`), foreign: true, wakes: 1},
		"a merge patch of a version, likewise":            {write: merge(`{"metadata":{"resourceVersion":"VERSION"}}`), foreign: true, wakes: 1},
		"a JSON patch that changes nothing":               {write: ops(`[{"op":"add","path":"/metadata/labels/foreign","value":"1"}]`), foreign: true, wakes: 1},
		"a JSON patch of a version, likewise":             {write: ops(`[{"op":"test","path":"/metadata/resourceVersion","value":"VERSION"}]`), foreign: true, wakes: 1},
		"a JSON patch to what it has tested":              {write: ops(`[{"op":"test","path":"/metadata/labels/foreign","value":"1"},{"op":"replace","path":"/metadata/labels/foreign","value":"1"}]`), foreign: true, wakes: 1},
		"a merge patch of no version":                     {write: merge(`{"metadata":{"labels":{"own":"1"}}}`), wakes: 1},
		"an apply of no version":                          {write: apply(`"labels":{"own":"1"}`), wakes: 1},
		"a deletion of no version that is held up":        {write: removal(false), wakes: 1},
		"a merge patch of a version":                      {write: merge(`{"metadata":{"resourceVersion":"VERSION","labels":{"own":"1"}}}`)},
		"an apply of a version":                           {write: apply(`"resourceVersion":"VERSION","labels":{"own":"1"}`)},
		"a deletion of a version that is held up":         {write: removal(true)},
		"a JSON patch of a version":                       {write: ops(`[{"op":"test","path":"/metadata/resourceVersion","value":"VERSION"},{"op":"add","path":"/metadata/labels","value":{"own":"1"}}]`)},
		"a JSON patch that removes something":             {write: ops(`[{"op":"remove","path":"/metadata/finalizers/0"}]`)},
		"a JSON patch that appends to a list":             {write: ops(`[{"op":"add","path":"/metadata/finalizers/-","value":"test.operatorkit.io/own"}]`)},
		"a JSON patch from what it has tested":            {write: ops(`[{"op":"test","path":"/metadata/labels","value":null},{"op":"add","path":"/metadata/labels","value":{"own":"1"}}]`)},
		"a merge patch of the version of somebody else's": {write: merge(`{"metadata":{"resourceVersion":"VERSION","labels":{"own":"1"}}}`), foreign: true, wakes: 1},
	}

	server := newRealServer(t)
	namespace := server.instance.Namespace(t)
	source := follow(t, informer.KubernetesConfig{
		Client: server.reader, Object: &policyv1.PodDisruptionBudget{}, Namespaces: []string{namespace}, Logger: server.logger,
	})
	author := &informer.Author{Framework: "f", Key: informer.Key{Name: "primary"}}
	var woken atomic.Int64
	source.Subscribe(func(e informer.Event) {
		if e.Key.Name != markerName {
			e.Wake("f", author.Key, func() { woken.Add(1) })
		}
	})
	catchUp := func() {
		t.Helper()
		mark := server.mark(t, namespace)
		operatortest.Eventually(t, "the source has caught up", func() error {
			obj, exists, err := source.Get(client.ObjectKeyFromObject(mark))
			if err == nil && (!exists || numberOf(obj.(client.Object)) < numberOf(mark)) {
				err = errors.New("it shows an older one")
			}
			return err
		})
	}
	n := 0
	for name, tt := range tests {
		n++
		obj := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprint("x-", n), Finalizers: []string{"test.operatorkit.io/held"},
		}}
		t.Run(name, func(t *testing.T) {
			if err := server.user.Create(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
			catchUp()
			server.lag.Hold(nil)
			defer server.lag.Release()
			if tt.foreign {
				if err := merge(`{"metadata":{"labels":{"foreign":"1"}}}`)(t.Context(), server.user, obj); err != nil {
					t.Fatal(err)
				}
			}
			woken.Store(0)
			if err := tt.write(context.WithValue(t.Context(), informer.AuthorKey, author), server.operator, obj); err != nil {
				t.Fatal(err)
			}
			live := server.live(t, client.ObjectKeyFromObject(obj))
			stored, exists, err := source.Get(client.ObjectKeyFromObject(obj))
			if err != nil || !exists || stored.(client.Object).GetResourceVersion() != live.ResourceVersion {
				t.Errorf("the source has %v, %v, want version %s", stored, err, live.ResourceVersion)
			}
			server.lag.Release()
			catchUp()
			if got := woken.Load(); got != tt.wakes {
				t.Errorf("who wrote was woken %d times, want %d", got, tt.wakes)
			}
		})
	}
}

func removal(locked bool) func(context.Context, client.Client, *policyv1.PodDisruptionBudget) error {
	return func(ctx context.Context, c client.Client, seen *policyv1.PodDisruptionBudget) error {
		preconditions := client.Preconditions{UID: &seen.UID}
		if locked {
			preconditions.ResourceVersion = &seen.ResourceVersion
		}
		return c.Delete(ctx, seen, preconditions)
	}
}
