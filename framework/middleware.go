package framework

import "context"

// StepInfo says which step of which resource a [Middleware] is called for.
type StepInfo struct {
	Resource string
	Step     Step
}

// Middleware is called in place of a step and carries it out by calling next: once, several times (a retry), or not at
// all. Panics of the step arrive as errors of next. It must be safe for concurrent use.
type Middleware func(ctx context.Context, info StepInfo, next func(context.Context) error) error

// StepWrapper is implemented by resources that let every step of theirs be wrapped, such as CRUD resources.
type StepWrapper interface {
	// WrapSteps returns a resource like the receiver, with m around each of its steps, outside of earlier ones. The
	// receiver is not changed.
	WrapSteps(m Middleware) Resource
}

// WrapSteps returns a resource like r whose every step goes through m: the steps of a CRUD resource one by one, for a
// plain one EnsureCreated and EnsureDeleted. r itself is not changed. Resources can be wrapped any number of times;
// the last wrapping is the outermost. A type that embeds a CRUD resource is a plain one, unless it is a StepWrapper by a method of
// its own. A nil resource stays what it is, and is refused by NewResourceSet.
func WrapSteps(r Resource, m Middleware) Resource {
	if isNil(r) {
		return r
	}
	if w, ok := r.(StepWrapper); ok {
		// The method of an embedded resource wraps that, and leaves out what r does beside it.
		if like := w.WrapSteps(m); !embeds(r) || !isOwn(like) {
			return like
		}
	}
	return &wrapped{Resource: r, middleware: m}
}

// own is implemented by the CRUD resources of this package, and by every type that embeds one.
type own interface{ itself() Resource }

// isOwn tells whether a resource is a CRUD resource of this package itself. Only then its methods, and what this package knows of its
// steps, say what its EnsureCreated does.
func isOwn(r Resource) bool {
	o, ok := r.(own)
	return ok && o.itself() == r
}

// embeds tells whether a resource has methods of a CRUD resource only because it embeds one.
func embeds(r Resource) bool {
	_, ok := r.(own)
	return ok && !isOwn(r)
}

// wrapped is a plain resource with a middleware around it.
type wrapped struct {
	Resource
	middleware Middleware
}

// FormerNames implements FormerNamer.
func (w *wrapped) FormerNames() []string { return formerNamesOf(w.Resource) }

// Kinds implements KindLister.
func (w *wrapped) Kinds() []string { return kindsOf(w.Resource) }

// Rights implements RightsLister.
func (w *wrapped) Rights() []Right { return RightsOf(w.Resource) }

func (w *wrapped) EnsureCreated(ctx context.Context, obj any) error {
	return w.middleware(ctx, StepInfo{w.Name(), StepEnsureCreated}, func(ctx context.Context) error {
		return asked(ctx, func(ctx context.Context) error { return w.Resource.EnsureCreated(ctx, obj) })
	})
}

func (w *wrapped) EnsureDeleted(ctx context.Context, obj any) error {
	return w.middleware(ctx, StepInfo{w.Name(), StepEnsureDeleted}, func(ctx context.Context) error {
		return asked(ctx, func(ctx context.Context) error { return w.Resource.EnsureDeleted(ctx, obj) })
	})
}
