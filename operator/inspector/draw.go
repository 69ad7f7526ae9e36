package inspector

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/panics"
	"github.com/operatorkit/operatorkit/operator/inspector/graph"
)

// DrawFunc draws pictures of one primary object, such as of what it consists of and what waits for what. It gets a copy of the
// object as the source has it, and a context that says whose the framework is (identity.From). It must change nothing, must end soon after its
// context, and may be called at any time and for several objects at once, while reconciliations go on. A panic of it is an
// error. What it says is shown as it is: it must not have anything secret in it.
type DrawFunc func(ctx context.Context, obj any) ([]*graph.Graph, error)

// Draw has the pictures of the objects of a framework drawn by that function, in place of the one that it had. Of a nil Inspector, which is
// what Dependencies have when the page is off, it does nothing.
func (i *Inspector) Draw(f *framework.Framework, draw DrawFunc) {
	if i == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.drawers[f] = draw
}

// Graphs returns the pictures that are drawn of an object of a framework (Draw), and none without a function that does. They are the caller's.
// For the error apierrors.IsNotFound holds when there is no such object; otherwise it is that of the source, of the function, or of ctx, and
// one with the place of the panic if the function panics. It changes nothing, and may be called for any number of objects at once,
// once the sources are synced.
func (i *Inspector) Graphs(ctx context.Context, f *framework.Framework, key informer.Key) ([]*graph.Graph, error) {
	i.mu.RLock()
	draw := i.drawers[f]
	i.mu.RUnlock()
	if draw == nil {
		return nil, nil
	}
	source, object := f.Sources()[0], plan.Object{Kind: "object", Namespace: key.Namespace, Name: key.Name}
	obj, exists, err := source.Get(key)
	if err != nil {
		return nil, fmt.Errorf("read %s from source %q: %w", object, source.Name(), err)
	}
	if !exists {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: source.Name()}, key.String())
	}
	if o, ok := obj.(runtime.Object); ok {
		object.Kind = cmp.Or(o.GetObjectKind().GroupVersionKind().Kind, object.Kind)
	}
	var graphs []*graph.Graph
	err = panics.Recovered(func() (err error) {
		graphs, err = draw(identity.NewContext(ctx, &identity.Scope{Identity: f.Identity()}), obj)
		return err
	})
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("draw the graphs of %s: %w", object, err)
	}
	return slices.DeleteFunc(graphs, func(g *graph.Graph) bool { return g == nil }), nil
}
