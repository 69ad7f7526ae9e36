package servicesets_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// Once the owner of a ServiceSet is gone nobody can clean up what that has on clusters: an operator that does not see the set, because a list
// lacked it, asks before it lets the owner go.
func TestWhoHasAServiceSetThatAListLacksIsNotLetGo(t *testing.T) {
	for kind, owner := range map[string]func(*world) client.Object{
		"ClusterDeployment":   func(*world) client.Object { return cluster("prod", "gold", service("cert=cert-1-0-0")) },
		"MultiClusterService": func(w *world) client.Object { return w.multi("cert", "gold", service("cert=cert-1-0-0")) },
	} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t)
			if kind == "MultiClusterService" {
				w.create(cluster("prod", "gold"))
			}
			w.create(templateOf("cert-1-0-0"))
			o, set := owner(w), &v1alpha1.ServiceSet{}
			w.create(o)
			first := w.start()
			operatortest.Eventually(t, "there is a set", func() error {
				sets := &v1alpha1.ServiceSetList{}
				if err := w.user.List(t.Context(), sets, client.InNamespace(w.namespace)); err != nil || len(sets.Items) != 1 {
					return errors.Join(err, fmt.Errorf("there are %d", len(sets.Items)))
				}
				set = &sets.Items[0]
				return nil
			})
			first.stop()

			w.lag = operatortest.NewLag()
			w.lag.Omit(func(r operatortest.Request) bool { return r.Resource == "servicesets" && r.Name == set.Name })
			var listed atomic.Int32
			w.faults.On(func(r operatortest.Request) bool {
				if r.Resource == "servicesets" && r.Verb == "list" {
					listed.Add(1)
				}
				return false
			}, operatortest.InternalError())
			if err := w.user.Delete(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			w.start()
			there := func() bool { return w.user.Get(t.Context(), client.ObjectKeyFromObject(o), owner(w)) == nil }
			operatortest.Eventually(t, "the API server is asked what is left", func() bool { return listed.Load() >= 2 || !there() })
			if !there() {
				t.Fatalf("the %s is gone, and its ServiceSet %s is there", kind, set.Name)
			}
			w.lag.Release()
			operatortest.Eventually(t, "both go", func() error {
				err := w.user.Get(t.Context(), client.ObjectKeyFromObject(set), &v1alpha1.ServiceSet{})
				if there() || !apierrors.IsNotFound(err) {
					return errors.Join(errors.New("the owner or its set is there"), err)
				}
				return nil
			})
		})
	}
}

// TestR11WhatAMultiClusterServiceHasThatAListLacksStays holds that a service is not uninstalled because the operator does not see whose it
// is, and that it goes once that one is gone.
func TestR11WhatAMultiClusterServiceHasThatAListLacksStays(t *testing.T) {
	w := newWorld(t)
	w.templates("cert-1-0-0", "dns-1-0-0")
	cd, mcs := cluster("prod", "gold"), w.multi("base", "gold", service("cert=cert-1-0-0"))
	w.create(cd, mcs)
	first := w.start()
	key, multi := w.setName(cd, mcs), mcs.Name
	w.report(key, v1alpha1.ServiceStateDeployed, "cert")
	w.wants(mcs, "Ready=True")
	first.stop()

	w.lag = operatortest.NewLag()
	w.lag.Omit(func(r operatortest.Request) bool { return r.Resource == "multiclusterservices" && r.Name == multi })
	var asked atomic.Int32
	w.faults.On(func(r operatortest.Request) bool {
		if r.Resource == "multiclusterservices" && r.Verb == "get" && r.Name == multi {
			asked.Add(1)
		}
		return false
	}, operatortest.InternalError())
	w.start()
	set := &v1alpha1.ServiceSet{}
	operatortest.Eventually(t, "the API server is asked whose the services are", func() error {
		if err := w.user.Get(t.Context(), key, set); err != nil {
			return err
		}
		if len(set.Spec.Services) == 1 && asked.Load() < 2 {
			return fmt.Errorf("it was asked %d times", asked.Load())
		}
		return nil
	})
	if len(set.Spec.Services) != 1 || len(set.Spec.Removing) > 0 {
		t.Fatalf("the service is taken away: %+v", set.Spec)
	}
	w.lag.Release()
	change(w, mcs, func(mcs *v1alpha1.MultiClusterService) {
		mcs.Spec.ServiceSpec.Services = append(mcs.Spec.ServiceSpec.Services, service("dns=dns-1-0-0"))
	})
	w.report(key, v1alpha1.ServiceStateDeployed, "cert", "dns")
	w.wants(mcs, "Ready=True")
	if err := w.user.Delete(t.Context(), mcs); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "its services are taken away", func() error {
		if err := w.user.Get(t.Context(), key, set); err != nil {
			return err
		}
		if len(set.Spec.Services) > 0 || len(set.Spec.Removing) != 2 {
			return fmt.Errorf("there are %+v", set.Spec)
		}
		return nil
	})
	w.takeAway(key)
	w.wantGone(mcs)
}
