package inspector_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/panics"
	"github.com/operatorkit/operatorkit/operator/inspector"
	"github.com/operatorkit/operatorkit/operator/inspector/graph"
)

var errPencil = errors.New("boom")

// sketch is a hook that draws one graph, whose title is what the object says, and spoils the object.
func sketch(_ context.Context, obj any) ([]*graph.Graph, error) {
	cm := obj.(*corev1.ConfigMap)
	title := cm.Data["title"]
	cm.Data["title"] = "spoilt"
	switch cm.Name {
	case "panics":
		panic("no pencil")
	case "fails":
		return []*graph.Graph{{Name: "half"}}, errPencil
	}
	return []*graph.Graph{nil, {Name: "parts", Title: title}, nil}, nil
}

// drawn runs a framework of these objects with the hook.
func drawn(t *testing.T, hook inspector.DrawFunc, objects ...*corev1.ConfigMap) *world {
	w := start(t, inspector.Config{}, objects)
	w.reconciled(uint64(len(objects)))
	if hook != nil {
		w.inspector.Draw(w.framework, hook)
	}
	return w
}

// drawnOf asks for the graphs of an object in the default namespace.
func (w *world) drawnOf(ctx context.Context, name string) ([]*graph.Graph, error) {
	return w.inspector.Graphs(ctx, w.framework, informer.Key{Namespace: "default", Name: name})
}

func TestGraphsAreDrawnOfACopyOfTheObject(t *testing.T) {
	w := drawn(t, sketch, site("a", "title", "services of a"))
	for range 2 {
		graphs, err := w.drawnOf(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if len(graphs) != 1 || graphs[0].Title != "services of a" {
			t.Fatalf("the graphs are %+v, want the one that was drawn", graphs)
		}
	}
}

func TestGraphsMayBeAskedForByManyAtOnce(t *testing.T) {
	w := drawn(t, sketch, site("a", "title", "x"))
	var asking sync.WaitGroup
	for range 20 {
		asking.Go(func() {
			if graphs, err := w.drawnOf(t.Context(), "a"); err != nil || len(graphs) != 1 || graphs[0].Title != "x" {
				t.Errorf("the graphs are %+v, %v", graphs, err)
			}
		})
	}
	asking.Wait()
}

func TestGraphsThatCantBeDrawnAreErrors(t *testing.T) {
	w := drawn(t, sketch, site("a", "title", "a"), site("fails", "title", "f"), site("panics", "title", "p"))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx  context.Context
		key  string
		is   func(error) bool
		says string
	}{
		"there is no such object": {t.Context(), "gone", apierrors.IsNotFound, `sites.example.com "default/gone" not found`},
		"the hook fails":          {t.Context(), "fails", func(err error) bool { return errors.Is(err, errPencil) }, "draw the graphs of Site default/fails: boom"},
		"the hook panics": {t.Context(), "panics", func(err error) bool {
			var p *panics.Error
			return errors.As(err, &p) && len(p.Stack) > 0
		}, "draw the graphs of Site default/panics: panic: value of type string in github.com/operatorkit/operatorkit/operator/inspector_test.sketch (draw_test.go:27)"},
		"the context has ended": {ended, "a", func(err error) bool { return errors.Is(err, context.Canceled) }, "draw the graphs of Site default/a: context canceled"},
	} {
		graphs, err := w.drawnOf(test.ctx, test.key)
		if err == nil || !test.is(err) || err.Error() != test.says || graphs != nil {
			t.Errorf("%s: the graphs are %v, the error is %v", name, graphs, err)
		}
	}
}

func TestWithoutAHookThereAreNoGraphs(t *testing.T) {
	w := drawn(t, nil, site("a"))
	for _, name := range []string{"a", "gone"} {
		if graphs, err := w.drawnOf(t.Context(), name); graphs != nil || err != nil {
			t.Errorf("of %s there are %v, %v", name, graphs, err)
		}
	}
}

// The page may be off: authors need not ask.
func TestDrawOfNoInspectorDoesNothing(t *testing.T) {
	var off *inspector.Inspector
	off.Draw(drawn(t, nil).framework, sketch)
}
