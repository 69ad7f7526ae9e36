package framework

import "context"

// StepInfo names the resource and the step that a [Middleware] is called for.
type StepInfo struct {
	Resource string
	Step     Step
}

// Middleware is called in place of a step and executes the step by calling next: once, several
// times (a retry), or not at all. Panics of the step arrive as errors of next. It must be safe for
// concurrent use.
type Middleware func(ctx context.Context, info StepInfo, next func(context.Context) error) error

// StepWrapper is implemented by resources with steps that can be wrapped one by one, such as CRUD
// resources.
type StepWrapper interface {
	// WrapSteps returns a resource like the receiver, with m around each of its steps, outside of
	// earlier middlewares. The receiver is not changed.
	WrapSteps(m Middleware) Resource
}

// WrapSteps returns a resource like r with m around every step: the single steps of a CRUD
// resource, or EnsureCreated and EnsureDeleted of a plain one. r itself is not changed. Resources
// can be wrapped any number of times; the last wrapping is the outermost. A type that embeds a CRUD
// resource counts as plain, unless it is a StepWrapper by its own method. A nil resource is
// returned unchanged; NewResourceSet refuses it.
func WrapSteps(r Resource, m Middleware) Resource {
	if isNil(r) {
		return r
	}
	if w, ok := r.(StepWrapper); ok {
		// The promoted method of an embedded resource wraps only the embedded one, without the rest
		// of r.
		if like := w.WrapSteps(m); !embeds(r) || !isOwn(like) {
			return like
		}
	}
	return &wrapped{Resource: r, middleware: m}
}

// own is implemented by the CRUD resources of this package, and by every type that embeds one.
type own interface{ itself() Resource }

// isOwn reports whether a resource is a CRUD resource of this package itself. Only then do its
// methods, and the steps that this package knows, describe its EnsureCreated.
func isOwn(r Resource) bool {
	o, ok := r.(own)
	return ok && o.itself() == r
}

// embeds reports whether a resource has methods of a CRUD resource only because it embeds one.
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
		return callStep(ctx, func(ctx context.Context) error { return w.Resource.EnsureCreated(ctx, obj) })
	})
}

func (w *wrapped) EnsureDeleted(ctx context.Context, obj any) error {
	return w.middleware(ctx, StepInfo{w.Name(), StepEnsureDeleted}, func(ctx context.Context) error {
		return callStep(ctx, func(ctx context.Context) error { return w.Resource.EnsureDeleted(ctx, obj) })
	})
}
