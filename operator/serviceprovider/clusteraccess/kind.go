package clusteraccess

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// tellsKind tells whether a request says that it is for an object of the kind that is served, or of none while that is not known.
func (c *Clusters[D]) tellsKind(request client.Object) bool {
	return request.GetAnnotations()[KindAnnotation] == c.kindServed()
}

// serves tells whether a request is for an object of this kind, as far as that is known.
func (c *Clusters[D]) serves(request client.Object) bool {
	return c.tellsKind(request) || request.GetAnnotations()[KindAnnotation] == "" || c.kindServed() == ""
}
