package identity

import (
	"context"
	"slices"
	"sync"
)

// Scope identifies the owner of the work in a context.
type Scope struct {
	Identity
	// Left are former names of the resource that another resource of its set handles too. The other
	// resource deletes undesired things that carry them.
	Left []string
	// LeftKinds are, by former name, the kinds of things that other resources handle, if they
	// handle only some kinds.
	LeftKinds map[string][]string
}

// Mark returns the mark for things that a resource of that name makes.
func (s *Scope) Mark(resource string) Mark {
	return Mark{Operator: s.Operator, Framework: s.Framework, Resource: resource}
}

// Former returns the marks for former names of the operator, the framework, and the resource. The
// resource adopts the things that carry one of them.
func (s *Scope) Former(resource string, formerNames []string) []Mark {
	return s.Marks(resource, formerNames)[1:]
}

// Marks returns all marks of the resource: its Mark, and then the Former ones.
func (s *Scope) Marks(resource string, formerNames []string) []Mark {
	var marks []Mark
	for _, i := range append([]Identity{s.Identity}, s.former()...) {
		for _, name := range append([]string{resource}, formerNames...) {
			marks = append(marks, Mark{Operator: i.Operator, Framework: i.Framework, Resource: name})
		}
	}
	return marks
}

// Leaves reports whether this resource leaves a thing with a former mark, which it does not desire,
// to another resource of the set. The other resource deletes the thing unless it desires it.
func (s *Scope) Leaves(former Mark) bool { return slices.Contains(s.Left, former.Resource) }

// LeavesKind is Leaves for things of a kind, for resources that list their kinds.
func (s *Scope) LeavesKind(former Mark, kind string) bool {
	return s.Leaves(former) || slices.Contains(s.LeftKinds[former.Resource], kind)
}

type scopeKey struct{}

// Key and HandoverKey are the keys of a context's *Scope and *Handover, for types that are contexts
// themselves.
var (
	Key         any = scopeKey{}
	HandoverKey any = handoverKey{}
)

// NewContext returns a context for work of that scope, with its own Handover.
func NewContext(ctx context.Context, s *Scope) context.Context {
	return &scoped{Context: ctx, scope: s}
}

// scoped is a context with a scope and a handover.
type scoped struct {
	context.Context
	scope    *Scope
	handover Handover
}

// Value implements context.Context.
func (c *scoped) Value(key any) any {
	switch key {
	case Key:
		return c.scope
	case HandoverKey:
		return &c.handover
	}
	return c.Context.Value(key)
}

// From returns the scope of the work of ctx. The Scope must not be changed.
func From(ctx context.Context) *Scope {
	if s, ok := ctx.Value(Key).(*Scope); ok {
		return s
	}
	return ofProgram()
}

// ofProgram returns the scope of work without a framework.
var ofProgram = sync.OnceValue(func() *Scope {
	return &Scope{Identity: Identity{Operator: Program(), Framework: DefaultFramework}}
})

// Handover records what resources of one reconciliation, or plan, adopted from earlier names. A
// later resource that handles the same names then does not consider it undesired, although its
// store may be older. The zero value is empty.
type Handover struct {
	mu    sync.Mutex
	taken map[string]bool
}

type handoverKey struct{}

// Take records that a resource adopts, or would adopt, the thing with that key, such as a kind, a
// namespace and a name. Without a framework it has no effect.
func Take(ctx context.Context, key string) {
	h, ok := ctx.Value(HandoverKey).(*Handover)
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.taken == nil {
		h.taken = map[string]bool{}
	}
	h.taken[key] = true
}

// Taken reports whether an earlier resource of the same reconciliation adopted the thing with that
// key.
func Taken(ctx context.Context, key string) bool {
	h, ok := ctx.Value(HandoverKey).(*Handover)
	if !ok {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.taken[key]
}
