package keyed

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
)

// Deleting reports whether a primary is being deleted.
func Deleting(primary any) bool {
	o, ok := primary.(interface{ GetDeletionTimestamp() *metav1.Time })
	return ok && o.GetDeletionTimestamp() != nil
}

// OwnerKey returns the key of a primary in the marks of its things. It is what given returns.
// Without given, it is the name of the primary, after its namespace and a slash if it has one.
func OwnerKey[O any](primary O, given func(O) string) (string, error) {
	if given != nil {
		if key := given(primary); key != "" {
			return key, nil
		}
		return "", framework.Permanent(fmt.Errorf("the owner key of a %T must not be empty", primary))
	}
	m, ok := any(primary).(informer.Meta)
	switch {
	case !ok || m.GetName() == "":
		return "", framework.Permanent(fmt.Errorf("a %T has no name: set OwnerKey", primary))
	case m.GetNamespace() != "":
		return m.GetNamespace() + "/" + m.GetName(), nil
	}
	return m.GetName(), nil
}

// Implements reports whether a primary of type O is an I, as far as its type says.
func Implements[O, I any]() bool {
	t := reflect.TypeFor[O]()
	return t.Kind() == reflect.Interface || t.Implements(reflect.TypeFor[I]())
}
