// Package frameworktest waits for frameworks in tests.
//
//	frameworktest.Look(t, f, website)   // f has looked at it as it is now, or as it was later
//	if n := writes(); n != before { … } // and is not going to write for it any more
//
// That nothing waits for a worker says little by itself: it is so before a change has arrived, too.
package frameworktest

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// Look has a framework that runs reconcile objects once more, and waits until that is done and nothing else waits for a worker. It begins when the
// source of the framework has each object in the version that is given, or a newer one. Without objects these are all that the source has.
func Look(t testing.TB, f *framework.Framework, objects ...client.Object) {
	t.Helper()
	keys := make([]informer.Key, 0, len(objects))
	for _, o := range objects {
		key := client.ObjectKeyFromObject(o)
		keys = append(keys, key)
		operatortest.Eventually(t, fmt.Sprintf("framework %s has %s in version %s", f.Name(), key, o.GetResourceVersion()), func() error {
			return has(f.Sources()[0], key, o.GetResourceVersion())
		})
	}
	if len(objects) == 0 {
		keys = f.Keys()
	}
	for _, key := range keys {
		f.Enqueue(key)
	}
	operatortest.Eventually(t, fmt.Sprintf("framework %s has nothing to do", f.Name()), func() error {
		if s := f.Status(); s.Fresh+s.Backlog+s.Active > 0 {
			return fmt.Errorf("its status is %+v", s)
		}
		return nil
	})
}

// has returns an error unless a source has an object in a version, or a newer one.
func has(source informer.Source, key informer.Key, version string) error {
	obj, exists, err := source.Get(key)
	if err != nil {
		return err
	}
	o, ok := obj.(client.Object)
	if !exists || !ok {
		return fmt.Errorf("it has a %T", obj)
	}
	order, err := resourceversion.CompareResourceVersion(o.GetResourceVersion(), version)
	if err == nil && order < 0 {
		err = fmt.Errorf("it has version %s", o.GetResourceVersion())
	}
	return err
}
