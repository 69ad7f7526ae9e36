package identity

import (
	"context"
	"slices"
	"sync"
)

// Scope is whose the work is that a context belongs to.
type Scope struct {
	Identity
	// Left are former names of the resource which another one of its set looks after too. That other one deletes what stands
	// under them and nobody desires.
	Left []string
	// LeftKinds are, by former name, the kinds of things that others look after which look after some kinds only.
	LeftKinds map[string][]string
}

// Mark returns the mark of what a resource of that name makes.
func (s *Scope) Mark(resource string) Mark {
	return Mark{Operator: s.Operator, Framework: s.Framework, Resource: resource}
}

// Former returns the marks that stand for former names of the operator, the framework, and the resource: what carries one of
// them is the resource's to take over.
func (s *Scope) Former(resource string, formerNames []string) []Mark {
	return s.Marks(resource, formerNames)[1:]
}

// Marks returns the marks of what is the resource's: its Mark, and then the Former ones.
func (s *Scope) Marks(resource string, formerNames []string) []Mark {
	var marks []Mark
	for _, i := range append([]Identity{s.Identity}, s.former()...) {
		for _, name := range append([]string{resource}, formerNames...) {
			marks = append(marks, Mark{Operator: i.Operator, Framework: i.Framework, Resource: name})
		}
	}
	return marks
}

// Leaves tells whether what carries a former mark, and is not desired by this resource, is to be left to another resource of
// the set, which deletes it if it does not desire it either.
func (s *Scope) Leaves(former Mark) bool { return slices.Contains(s.Left, former.Resource) }

// LeavesKind is Leaves for things of a kind, for resources that say which kinds they look after.
func (s *Scope) LeavesKind(former Mark, kind string) bool {
	return s.Leaves(former) || slices.Contains(s.LeftKinds[former.Resource], kind)
}

type scopeKey struct{}

// The keys under which a context has its *Scope and its *Handover, for types that are contexts themselves.
var (
	Key         any = scopeKey{}
	HandoverKey any = handoverKey{}
)

// NewContext returns a context for work of that scope, with a Handover of its own.
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

// From returns whose the work is that ctx belongs to. The Scope must not be changed.
func From(ctx context.Context) *Scope {
	if s, ok := ctx.Value(Key).(*Scope); ok {
		return s
	}
	return ofProgram()
}

// ofProgram is for work of no framework.
var ofProgram = sync.OnceValue(func() *Scope { return &Scope{Identity: Identity{Operator: Program(), Framework: DefaultFramework}} })

// Handover is what resources of one reconciliation, or plan, took over from earlier names, so that one that looks after the same
// names later does not take it for something that nobody desires: its store may not know yet. The zero value is empty.
type Handover struct {
	mu    sync.Mutex
	taken map[string]bool
}

type handoverKey struct{}

// Take says that a resource takes over, or would take over, what is called by key, such as a kind, a namespace and a name.
// Without a framework it has no effect.
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

// Taken tells whether an earlier resource of the same reconciliation took over what is called by key.
func Taken(ctx context.Context, key string) bool {
	h, ok := ctx.Value(HandoverKey).(*Handover)
	if !ok {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.taken[key]
}
