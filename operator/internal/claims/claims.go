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
	// Part is which part of the object is claimed, as the label of a domain, where others may have other parts: it begins the name of the
	// annotation. Default: all of it.
	Part string
	// Of returns what is claimed for an object of the framework, which may be shared, and nil for nothing. Default: the object itself.
	Of func(ctx context.Context, obj any) (client.Object, error)
	// Owner is the framework whose claims they are. It is set before anything runs.
	Owner *framework.Framework
}

// Refusal says who else has claimed an object, by an error for which framework.IsPermanent holds. It is nil if nobody has.
func (c *Claims) Refusal(obj client.Object) error {
	own := c.Owner.Identity()
	if holder := c.HolderOf(obj); holder != "" {
		return framework.Permanent(fmt.Errorf("%s is claimed by %s, and %s does nothing for it: give one of the two other objects, "+
			"or take the annotation %s off it if whoever it names does not run any more",
			c.what(obj), holder, own, c.annotation()))
	}
	return nil
}

// By returns what the Annotation of an identity's claim is.
func By(own identity.Identity) string { return form + own.String() }

// HolderOf returns who else has claimed an object, empty for nobody.
func (c *Claims) HolderOf(obj client.Object) string {
	return HolderOf(obj, c.annotation(), c.Owner.Identity())
}

// HolderOf returns who else than an identity has claimed an object by an annotation, empty for nobody.
func HolderOf(obj client.Object, annotation string, own identity.Identity) string {
	return Holder(obj.GetAnnotations()[annotation], own)
}

// Holder returns who else than an identity a claim is of, empty for nobody.
func Holder(by string, own identity.Identity) string {
	if by == "" || by == By(own) {
		return ""
	}
	marks := (&identity.Scope{Identity: own}).Marks("", nil)
	if slices.ContainsFunc(marks, func(m identity.Mark) bool { return by == claimOf(m) }) {
		return ""
	}
	if holder, known := strings.CutPrefix(by, form); known {
		return holder
	}
	return fmt.Sprintf("somebody who says so in a form that is not known here: %q", by)
}

// annotation is the name of the one that claims are written to.
func (c *Claims) annotation() string {
	if c.Part == "" {
		return Annotation
	}
	return c.Part + "." + Annotation
}

// what names what is claimed.
func (c *Claims) what(obj client.Object) string {
	if c.Part == "" {
		return c.Kind + " " + name(obj)
	}
	return fmt.Sprintf("the %s of %s %s", c.Part, c.Kind, name(obj))
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
	own := By(c.Owner.Identity())
	for range maxAttempts {
		if err := c.Refusal(seen); err != nil {
			return nil, err
		}
		if seen.GetAnnotations()[c.annotation()] == own {
			return seen, nil
		}
		claimed := seen.DeepCopyObject().(client.Object)
		annotations := maps.Clone(seen.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[c.annotation()] = own
		claimed.SetAnnotations(annotations)
		err := c.Client.Patch(ctx, claimed, client.MergeFromWithOptions(seen, client.MergeFromWithOptimisticLock{}))
		if err == nil {
			return claimed, nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("claim %s: %w", c.what(seen), err)
		}
		if seen, err = c.again(ctx, seen); err != nil {
			return nil, fmt.Errorf("claim %s: %w", c.what(claimed), err)
		}
	}
	return nil, fmt.Errorf("claim %s: it kept changing", c.what(seen))
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

// claimOf returns the Annotation of who has a mark.
func claimOf(m identity.Mark) string {
	return By(identity.Identity{Operator: m.Operator, Framework: m.Framework})
}

// name names an object without its kind.
func name(obj client.Object) string {
	return strings.TrimPrefix(client.ObjectKeyFromObject(obj).String(), "/")
}
