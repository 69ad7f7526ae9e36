package keyedresource

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/informer"
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
	scope *identity.Scope
	// marks are the present one, and then those of former names. Texts are what things have of them.
	marks []identity.Mark
	texts []string
}

// ownership returns by what the things are known that the resource has for obj, and a context that tells it.
func (r *resource[O, T]) ownership(ctx context.Context, obj O) (context.Context, ownership, error) {
	key, err := r.ownerKey(obj)
	if err != nil {
		return ctx, ownership{}, framework.Permanent(err)
	}
	scope := identity.From(ctx)
	own := ownership{scope: scope, marks: scope.Marks(r.config.Name, r.config.FormerNames)}
	for _, m := range own.marks {
		own.texts = append(own.texts, MarkOf(m, key))
	}
	return context.WithValue(ctx, marksKey{}, own.texts), own, nil
}

func (r *resource[O, T]) ownerKey(obj O) (string, error) {
	if r.config.OwnerKey != nil {
		if key := r.config.OwnerKey(obj); key != "" {
			return key, nil
		}
		return "", fmt.Errorf("the owner key of a %T must not be empty", obj)
	}
	m, ok := any(obj).(informer.Meta)
	switch {
	case !ok || m.GetName() == "":
		return "", fmt.Errorf("a %T has no name: set OwnerKey", obj)
	case m.GetNamespace() != "":
		return m.GetNamespace() + "/" + m.GetName(), nil
	}
	return m.GetName(), nil
}

// claim says whose a thing is.
type claim struct {
	// own is true for one that the resource made for the primary, and former the mark of a former name under which it did.
	own    bool
	former identity.Mark
	// reason says why it is not, and free whether it is nobody's. An inherited one was that of an earlier life of the primary, and is
	// taken over.
	reason    string
	free      bool
	inherited bool
}

// claimOn tells whose a thing is: by its mark, or by the journal if there are no marks, or else by whether Current returned it.
func (r *resource[O, T]) claimOn(own ownership, j *journal, it item[T], listed bool) claim {
	switch {
	case r.config.Mark == nil && r.config.Journal != nil && !j.has(it.key.Name):
		return j.lacks(it.key.Name)
	case r.config.Mark == nil && r.config.Journal != nil:
		return claim{own: true, former: j.former(it.key.Name)}
	case r.config.Mark == nil && !listed:
		return claim{free: true, reason: "it exists already, and is not among what belongs to the primary"}
	case r.config.Mark == nil:
		return claim{own: true}
	}
	mark := r.config.Mark(it.content)
	switch i := slices.Index(own.texts, mark); {
	case mark == "":
		return claim{free: true, reason: "it exists already and has no mark"}
	case i < 0:
		return claim{reason: fmt.Sprintf("it is marked as another's, %q", mark)}
	case i > 0:
		return claim{own: true, former: own.marks[i]}
	}
	return claim{own: true}
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
