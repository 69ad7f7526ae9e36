package clusteraccess

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operatorkit/operatorkit/framework"
)

// ServeKind says of which kind the objects are, before anything is asked for them. From then on requests for objects of other kinds are left
// alone, and have names of their own, although they carry the same marks: a service provider can have several APIs, each with Clusters of
// its own. What was asked for before the kind was known is taken over as it is; of an object that went while nothing ran it stays, until
// somebody deletes it, because it may be for an object of another kind. A serviceprovider.APIReconciler calls ServeKind when it is built;
// who has controllers of other sorts for several kinds calls it too. The error is one for which framework.IsInvalidConfig holds: the
// objects are of another kind already.
func (c *Clusters[D]) ServeKind(kind schema.GroupKind) error {
	name := kind.String()
	if c.kind.CompareAndSwap(nil, &name) || c.kindServed() == name {
		return nil
	}
	return fmt.Errorf("%w: it asks for access for objects of kind %s: make another one for those of %s", framework.ErrInvalidConfig, c.kindServed(), name)
}

// kindServed is the kind of the objects, empty if it is not known.
func (c *Clusters[D]) kindServed() string {
	if kind := c.kind.Load(); kind != nil {
		return *kind
	}
	return ""
}

// origin is what requests say of where their objects are: the kind, and the UID of the onboarding cluster. Each is empty if it is not known.
type origin struct{ kind, onboarding string }

// origin returns that of the objects that are served. A UID that is not known yet is read from the onboarding cluster.
func (c *Clusters[D]) origin(ctx context.Context) (origin, error) {
	uid, err := c.onboarding.read(ctx)
	return origin{c.kindServed(), string(uid)}, err
}

// originOf returns what a request says.
func originOf(request client.Object) origin {
	return origin{request.GetAnnotations()[KindAnnotation], request.GetAnnotations()[OnboardingAnnotation]}
}

// adopts reports whether a request is for an object of this origin, or may be: it says nothing else. Only what is known of the origin counts.
func (o origin) adopts(request client.Object) bool {
	says := originOf(request)
	return (says.kind == o.kind || says.kind == "" || o.kind == "") && (says.onboarding == o.onboarding || says.onboarding == "" || o.onboarding == "")
}

// isNamedBy reports whether a request names all that is known of the origin.
func (o origin) isNamedBy(request client.Object) bool {
	says := originOf(request)
	return (o.kind == "" || says.kind == o.kind) && (o.onboarding == "" || says.onboarding == o.onboarding)
}

// serves is adopts, but for requests that name no onboarding cluster, neither by an annotation nor by their name: those may be for an object
// of the same name in another one.
func (c *Clusters[D]) serves(o origin, of reconcile.Request, request client.Object) bool {
	named := o.onboarding == "" || originOf(request).onboarding == o.onboarding
	return o.adopts(request) && (named || request.GetName() == c.config.meta(of, request.GetLabels()[AccessLabel], o).Name)
}
