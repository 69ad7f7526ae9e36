package framework

import (
	"context"

	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/informer"
)

// extras are what most reconciliations have no need of: those that change nothing, and of which nothing is told. They are made when
// somebody asks for one of them.
type extras struct {
	// author is who writes in the reconciliation.
	author   informer.Author
	handover identity.Handover
	// log is what messages say of the reconciliation.
	log logMeta
	// secrets are the values that nobody may see of the reconciliation: own, or those of the one that it is a part of.
	secrets *secretscontext.Vocabulary
	own     secretscontext.Vocabulary
	// scopes are those of the resources outside of a framework.
	scopes []identity.Scope
}

// extras makes those of the reconciliation unless they are there.
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

// knowsSecrets tells whether there are values that nobody may see.
func (r *reconciliation) knowsSecrets() bool {
	if made := r.made.Load(); made != nil {
		return !made.secrets.Empty()
	}
	return !secretscontext.From(r.Context).Empty()
}

// scopeAt is whose the work is of the resource that has that place in its set.
func (r *reconciliation) scopeAt(place int32) *identity.Scope {
	if r.in != nil {
		return &r.in.scopes[r.set][place]
	}
	return &r.extras().scopes[place]
}

// framework returns the name of the framework, and nothing outside of one.
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
