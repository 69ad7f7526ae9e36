package framework

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/framework/graph"
	"github.com/operatorkit/operatorkit/informer"
)

// Graphs returns the pictures that Config.Graphs draws of an object of the source, and none without it. They are the
// caller's. For the error apierrors.IsNotFound holds when there is no such object; otherwise it is that of the source, of
// Config.Graphs, or of ctx, and a *PanicError if it panics. It changes nothing, and may be called at any time and for any
// number of objects at once, once the sources are synced.
func (f *Framework) Graphs(ctx context.Context, key informer.Key) ([]*graph.Graph, error) {
	if f.config.Graphs == nil {
		return nil, nil
	}
	obj, exists, err := f.source.Get(key)
	if err != nil {
		return nil, fmt.Errorf("read %s from source %q: %w", keyString(key), f.source.Name(), err)
	}
	if !exists {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: f.source.Name()}, keyString(key))
	}
	var graphs []*graph.Graph
	err = recoveredIn(ctx, func(ctx context.Context) (err error) {
		graphs, err = f.config.Graphs(ctx, obj)
		return err
	})
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("draw the graphs of %s: %w", describe(obj, key), err)
	}
	return slices.DeleteFunc(graphs, func(g *graph.Graph) bool { return g == nil }), nil
}
