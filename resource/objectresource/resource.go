package objectresource

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
)

// resource is the logic of the CRUD resource.
type resource[O any] struct {
	keyed.Engine[O, Key, object]
	config  Config[O]
	kinds   []kind
	settled settled
	// replaced are the kinds of Config.Replace.
	replaced []schema.GroupVersionKind
}

func newResource[O any](config Config[O], kinds []kind, replaced []schema.GroupVersionKind) *resource[O] {
	r := &resource[O]{config: config, kinds: kinds, settled: newSettled(), replaced: replaced}
	r.Engine = keyed.Engine[O, Key, object]{
		Config: keyed.Config{
			Name: config.Name, FormerNames: config.FormerNames, Noun: "object",
			Adopt: config.Adopt, Logger: config.Logger,
			Alone: meta.IsNoMatchError,
		},
		For: r.backend,
	}
	return r
}

// Kinds implements framework.KindLister.
func (r *resource[O]) Kinds() []string {
	kinds := make([]string, 0, len(r.kinds))
	for _, k := range r.kinds {
		kinds = append(kinds, Key{GVK: k.gvk}.kind())
	}
	return kinds
}

// Rights implements framework.RightsLister. Kinds with a store are listed too, until that is synced.
func (r *resource[O]) Rights() []framework.Right {
	rights := make([]framework.Right, 0, len(r.kinds))
	for _, k := range r.kinds {
		right := framework.Right{Kind: k.gvk, Verbs: []string{"get", "list", "create", "patch", "delete"}, DryRun: []string{"patch"}}
		if slices.Contains(r.replaced, k.gvk) {
			right.DryRun = []string{"create", "patch"}
		}
		rights = append(rights, right)
	}
	return rights
}

// NewDeletePatch implements framework.TypedCRUDResourceOps. Objects which the stores lack are
// deleted, too: nobody looks for them later.
func (r *resource[O]) NewDeletePatch(
	ctx context.Context, obj O, current, desired State,
) (*framework.TypedPatch[State], error) {
	o, err := r.objects(obj, r.Marks(ctx))
	if err != nil {
		return nil, err
	}
	lacked, err := o.lacked(ctx, current)
	if err != nil {
		return nil, err
	}
	current.Items = slices.Concat(current.Items, lacked)
	return r.Engine.NewDeletePatch(ctx, obj, current, desired)
}
