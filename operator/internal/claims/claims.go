package claims

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
)

// Annotation says who works for an object, such as: v1 framework "machineservices" of operator "fleet".
const Annotation = "operatorkit.io/claimed-by"

// form begins each Annotation of the form that is written and known here.
const form = identity.Form + " "

// maxAttempts is how often a claim is tried when others change the object at the same moment.
const maxAttempts = 10

// Claims are those of a framework. They are safe for concurrent use once Owner is set.
type Claims struct {
	// Client writes, and reads past the sources.
	Client client.Client
	// Kind is that of what is claimed, for errors.
	Kind string
	// Of returns what is claimed for an object of the framework, which may be shared, and nil for nothing. Default: the object itself.
	Of func(ctx context.Context, obj any) (client.Object, error)
	// Owner is the framework whose claims they are. It is set before anything runs.
	Owner *framework.Framework
}

// Refusal says who else has claimed an object, by an error for which framework.IsPermanent holds. It is nil if nobody has.
func (c *Claims) Refusal(obj client.Object) error {
	by := obj.GetAnnotations()[Annotation]
	own := c.Owner.Identity()
	marks := (&identity.Scope{Identity: own}).Marks("", nil)
	if by == "" || slices.ContainsFunc(marks, func(m identity.Mark) bool { return by == claimOf(m) }) {
		return nil
	}
	holder, known := strings.CutPrefix(by, form)
	if !known {
		holder = fmt.Sprintf("somebody who says so in a form that is not known here: %q", by)
	}
	return framework.Permanent(fmt.Errorf("%s %s is claimed by %s, and %s does nothing for it: give one of the two other objects, "+
		"or take the annotation %s off it if whoever it names does not run any more",
		c.Kind, name(obj), holder, nameOf(marks[0]), Annotation))
}

// Take claims what is to be claimed for an object, and returns the object as it is then. The object itself is not changed.
func (c *Claims) Take(ctx context.Context, obj any) (any, error) {
	if c.Of == nil {
		return c.take(ctx, obj.(client.Object))
	}
	what, err := c.Of(ctx, obj)
	if err != nil || what == nil {
		return obj, err
	}
	_, err = c.take(ctx, what)
	return obj, err
}

// take claims an object. The resource version, which no other life of the object has ever had, has the API server refuse the
// second one of two who claim it at once.
func (c *Claims) take(ctx context.Context, seen client.Object) (client.Object, error) {
	own := claimOf((&identity.Scope{Identity: c.Owner.Identity()}).Mark(""))
	for range maxAttempts {
		if err := c.Refusal(seen); err != nil {
			return nil, err
		}
		if seen.GetAnnotations()[Annotation] == own {
			return seen, nil
		}
		claimed := seen.DeepCopyObject().(client.Object)
		annotations := maps.Clone(seen.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[Annotation] = own
		claimed.SetAnnotations(annotations)
		err := c.Client.Patch(ctx, claimed, client.MergeFromWithOptions(seen, client.MergeFromWithOptimisticLock{}))
		if err == nil {
			return claimed, nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("claim %s %s: %w", c.Kind, name(seen), err)
		}
		if seen, err = c.again(ctx, seen); err != nil {
			return nil, fmt.Errorf("claim %s %s: %w", c.Kind, name(claimed), err)
		}
	}
	return nil, fmt.Errorf("claim %s %s: it kept changing", c.Kind, name(seen))
}

// again reads an object past the sources. One that took its name is not it.
func (c *Claims) again(ctx context.Context, seen client.Object) (client.Object, error) {
	live := reflect.New(reflect.TypeOf(seen).Elem()).Interface().(client.Object)
	err := c.Client.Get(ctx, client.ObjectKeyFromObject(seen), live)
	if err == nil && live.GetUID() != seen.GetUID() {
		err = apierrors.NewNotFound(schema.GroupResource{Resource: c.Kind}, seen.GetName())
	}
	return live, err
}

// claimOf returns the Annotation of a framework.
func claimOf(m identity.Mark) string { return form + nameOf(m) }

func nameOf(m identity.Mark) string {
	return identity.Identity{Operator: m.Operator, Framework: m.Framework}.String()
}

// name names an object without its kind.
func name(obj client.Object) string {
	return strings.TrimPrefix(client.ObjectKeyFromObject(obj).String(), "/")
}
