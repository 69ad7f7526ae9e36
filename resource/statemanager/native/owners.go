package native

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// Owners returns the function that names the ServiceSet which an object on a cluster belongs to, by its label
// carrier.OwnerLabel. It knows the sets that the source holds, and follows the source for as long as that lives. Of an object of
// another keeper's set it may name the set of the same namespace and name, which is then looked at in vain.
func Owners(sets informer.Source) target.Owners {
	var known sync.Map // informer.Key by carrier.SetID
	sets.Subscribe(func(e informer.Event) {
		id := carrier.SetID(e.Key.Namespace, e.Key.Name)
		if e.Type == informer.Deleted {
			known.Delete(id)
			return
		}
		known.Store(id, e.Key)
	})
	return func(_ target.Key, obj client.Object) []target.Key {
		key, ok := known.Load(carrier.SetOf(obj.GetLabels()[carrier.OwnerLabel]))
		if !ok {
			return nil
		}
		return []target.Key{key.(informer.Key)}
	}
}
