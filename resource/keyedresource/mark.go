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

// claimOn tells whose a thing is: by its mark, or by the journal if there are no marks, or else by whether Current returned it.
func (r *things[O, T]) claimOn(it item[T], listed bool) keyed.Claim {
	switch {
	case r.config.Mark == nil && r.config.Journal != nil:
		return r.journal.claimOn(it.Key.Name)
	case r.config.Mark == nil && !listed:
		return keyed.FreeClaim("it exists already, and is not among what belongs to the primary")
	case r.config.Mark == nil:
		return keyed.Claim{}
	}
	mark := r.config.Mark(it.Thing)
	switch i := slices.Index(r.texts, mark); {
	case mark == "":
		return keyed.FreeClaim("it exists already and has no mark")
	case i < 0:
		return keyed.ForeignClaim(fmt.Sprintf("it is marked as another's, %q", mark))
	default:
		return keyed.ClaimOf(r.marks, i)
	}
}

// RefusedError says that a thing is desired that exists and is not the resource's own.
type RefusedError = keyed.RefusedError[Key]
