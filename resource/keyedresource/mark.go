package keyedresource

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
)

// Mark returns what Desired writes on the things of a primary, where the system can hold it, so that they are known as the resource's
// own: see [MarkOf]. It is empty on a context that no function of a Config was given.
func Mark(ctx context.Context) string {
	if marks := Marks(ctx); len(marks) > 0 {
		return marks[0]
	}
	return ""
}

// Marks returns the marks that the things of a primary have: the present one, and then those of former names. Current can ask
// a system by them.
func Marks(ctx context.Context) []string {
	marks, _ := ctx.Value(marksKey{}).([]string)
	return slices.Clone(marks)
}

type marksKey struct{}

// MarkOf returns the mark of the things of a primary, whose key Config.OwnerKey tells: the form that marks have, the operator, the
// framework and the resource, each escaped as in a URL, and the key, with slashes between them, such as
// "v1/zone-operator/services/records/default/home". It is also what all marks of the resource begin with if the key is empty.
func MarkOf(m identity.Mark, ownerKey string) string {
	return strings.Join([]string{
		identity.Form, url.PathEscape(m.Operator), url.PathEscape(m.Framework), url.PathEscape(m.Resource), ownerKey,
	}, "/")
}

// ownership is by what the things are known that a resource of a framework has for one primary.
type ownership struct {
	// marks are the present one, and then those of former names. Texts are what things have of them.
	marks []identity.Mark
	texts []string
}

// ownership returns by what the things are known that the resource has for obj, and a context that tells it.
func (r *resource[O, T]) ownership(ctx context.Context, obj O) (context.Context, ownership, error) {
	key, err := keyed.OwnerKey(obj, r.config.OwnerKey)
	if err != nil {
		return ctx, ownership{}, err
	}
	own := ownership{marks: identity.From(ctx).Marks(r.config.Name, r.config.FormerNames)}
	for _, m := range own.marks {
		own.texts = append(own.texts, MarkOf(m, key))
	}
	return context.WithValue(ctx, marksKey{}, own.texts), own, nil
}

// claim is that on a thing that exists.
type claim struct {
	keyed.Claim
	// inherited is set for one of an earlier life of the primary. It is adopted.
	inherited bool
}

// claimOn tells whose a thing is: by its mark, or by the journal if there are no marks, or else by whether Current returned it.
func (r *resource[O, T]) claimOn(own ownership, j *journal, it item[T], listed bool) claim {
	switch {
	case r.config.Mark == nil && r.config.Journal != nil && !j.has(it.key.Name):
		return j.lacks(it.key.Name)
	case r.config.Mark == nil && r.config.Journal != nil:
		return claim{Claim: keyed.Claim{Former: j.former(it.key.Name)}}
	case r.config.Mark == nil && !listed:
		return free("it exists already, and is not among what belongs to the primary")
	case r.config.Mark == nil:
		return claim{}
	}
	mark := r.config.Mark(it.content)
	switch i := slices.Index(own.texts, mark); {
	case mark == "":
		return free("it exists already and has no mark")
	case i < 0:
		return claim{Claim: keyed.Claim{Holder: keyed.Foreign, Reason: fmt.Sprintf("it is marked as another's, %q", mark)}}
	default:
		return claim{Claim: keyed.ClaimOf(own.marks, i)}
	}
}

// free is the claim on a thing of nobody's.
func free(reason string) claim {
	return claim{Claim: keyed.Claim{Holder: keyed.Free, Reason: reason}}
}

// RefusedError says that a thing is desired that exists and is not the resource's own.
type RefusedError struct {
	// Thing is what should have been put.
	Thing Key
	// Reason says whose it is.
	Reason string
	// Adoptable is true when Config.Adopt would have allowed it.
	Adoptable bool
}

// Error implements error.
func (e *RefusedError) Error() string { return keyed.Refusal(e.Thing, e.Reason, e.Adoptable) }
