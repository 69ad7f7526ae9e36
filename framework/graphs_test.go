package framework_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/graph"
	"github.com/operatorkit/operatorkit/informer"
)

// drawing is a hook that draws one graph, whose title is what the object says, and spoils the object.
func drawing(_ context.Context, obj any) ([]*graph.Graph, error) {
	cm := obj.(*corev1.ConfigMap)
	title := cm.Data["title"]
	cm.Data["title"] = "spoilt"
	switch cm.Name {
	case "panics":
		panic("no pencil")
	case "fails":
		return []*graph.Graph{{Name: "half"}}, errBoom
	}
	return []*graph.Graph{nil, {Name: "parts", Title: title}, nil}, nil
}

// drawn runs a framework with the hook and these objects while test runs.
func drawn(t *testing.T, hook func(context.Context, any) ([]*graph.Graph, error), test func(t *testing.T, f *framework.Framework), objects ...*corev1.ConfigMap) {
	synctest.Test(t, func(t *testing.T) {
		source := informer.NewPush("objects")
		for _, obj := range objects {
			put(t, source, obj)
		}
		f := newFramework(t, framework.Config{Source: source, Graphs: hook}, &resource{name: "r"})
		stop := running(t, f)
		defer stop()
		synctest.Wait()
		test(t, f)
	})
}

func TestGraphsAreDrawnOfACopyOfTheObject(t *testing.T) {
	drawn(t, drawing, func(t *testing.T, f *framework.Framework) {
		for range 2 {
			graphs, err := f.Graphs(t.Context(), keyOf("a"))
			if err != nil {
				t.Fatal(err)
			}
			if len(graphs) != 1 || graphs[0].Title != "services of a" {
				t.Fatalf("the graphs are %+v, want the one that was drawn", graphs)
			}
		}
	}, configMap("a", "title", "services of a"))
}

func TestGraphsMayBeAskedForByManyAtOnce(t *testing.T) {
	drawn(t, drawing, func(t *testing.T, f *framework.Framework) {
		var asking sync.WaitGroup
		for range 20 {
			asking.Go(func() {
				if graphs, err := f.Graphs(t.Context(), keyOf("a")); err != nil || len(graphs) != 1 || graphs[0].Title != "x" {
					t.Errorf("the graphs are %+v, %v", graphs, err)
				}
			})
		}
		asking.Wait()
	}, configMap("a", "title", "x"))
}

func TestGraphsThatCantBeDrawnAreErrors(t *testing.T) {
	drawn(t, drawing, func(t *testing.T, f *framework.Framework) {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for name, test := range map[string]struct {
			ctx  context.Context
			key  string
			is   func(error) bool
			says string
		}{
			"there is no such object": {t.Context(), "gone", apierrors.IsNotFound, `objects "default/gone" not found`},
			"the hook fails":          {t.Context(), "fails", func(err error) bool { return errors.Is(err, errBoom) }, "draw the graphs of ConfigMap default/fails: boom"},
			"the hook panics": {t.Context(), "panics", func(err error) bool {
				var p *framework.PanicError
				return errors.As(err, &p) && len(p.Stack) > 0
			}, "draw the graphs of ConfigMap default/panics: panic: value of type string in github.com/operatorkit/operatorkit/framework_test.drawing (graphs_test.go:25)"},
			"the context has ended": {ended, "a", func(err error) bool { return errors.Is(err, context.Canceled) }, "draw the graphs of ConfigMap default/a: context canceled"},
		} {
			graphs, err := f.Graphs(test.ctx, keyOf(test.key))
			if err == nil || !test.is(err) || err.Error() != test.says || graphs != nil {
				t.Errorf("%s: the graphs are %v, the error is %v", name, graphs, err)
			}
		}
	}, configMap("a", "title", "a"), configMap("fails", "title", "f"), configMap("panics", "title", "p"))
}

func TestWithoutAHookThereAreNoGraphs(t *testing.T) {
	drawn(t, nil, func(t *testing.T, f *framework.Framework) {
		for _, name := range []string{"a", "gone"} {
			if graphs, err := f.Graphs(t.Context(), keyOf(name)); graphs != nil || err != nil {
				t.Errorf("of %s there are %v, %v", name, graphs, err)
			}
		}
	}, configMap("a"))
}
