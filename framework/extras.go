package framework

import (
	"context"

	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/informer"
)

// extras are made at the first use. Most reconciliations change nothing and log nothing, and do not
// need them.
type extras struct {
	// author identifies the reconciliation in its writes.
	author   informer.Author
	handover identity.Handover
	// log has the fields of the reconciliation's messages.
	log logMeta
	// secrets are the secret values of the reconciliation: own, or the values of the enclosing
	// reconciliation.
	secrets *secretscontext.Vocabulary
	own     secretscontext.Vocabulary
	// scopes are the scopes of the resources outside a framework.
	scopes []identity.Scope
}

// extras returns the extras of the reconciliation and makes them if needed.
func (r *reconciliation) extras() *extras {
	if made := r.made.Load(); made != nil {
		return made
	}
	x := &extras{secrets: secretscontext.From(r.Context)}
	if x.secrets == nil {
		x.secrets = &x.own
		x.own.Open(r.key.Namespace, r.key.Name)
	}
	if r.in != nil {
		x.author.Framework, x.author.Key = r.in, r.key
		if r.isTraced() {
			x.author.Span = recordedSpan(r.Context)
		}
	} else {
		x.scopes = scopesOf(identity.From(r.Context).Identity, leftToOthers(*r.alone))
	}
	r.made.CompareAndSwap(nil, x)
	return r.made.Load()
}

// knowsSecrets reports whether secret values are known.
func (r *reconciliation) knowsSecrets() bool {
	if made := r.made.Load(); made != nil {
		return !made.secrets.Empty()
	}
	return !secretscontext.From(r.Context).Empty()
}

// scopeAt returns the scope of the resource at that place in its set.
func (r *reconciliation) scopeAt(place int32) *identity.Scope {
	if r.in != nil {
		return &r.in.scopes[r.set][place]
	}
	return &r.extras().scopes[place]
}

// framework returns the name of the framework. It is empty outside a framework.
func (r *reconciliation) framework() string {
	if r.in == nil {
		return ""
	}
	return r.in.Name()
}

// newAlone returns the context of a reconciliation, or a plan, without a framework.
func newAlone(ctx context.Context, e event, obj any, resources []Resource) *reconciliation {
	both := &struct {
		reconciliation
		resources []Resource
	}{reconciliation{event: e, object: obj}, resources}
	both.alone = &both.resources
	both.init(ctx)
	return &both.reconciliation
}
