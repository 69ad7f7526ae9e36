package servicesets_test

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/rogpeppe/go-internal/testscript"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// remember notes how the ServiceSets are now, for kept.
func remember(ts *testscript.TestScript, neg bool, args []string) {
	never(ts, neg, args, 0)
	s := scenarioOf(ts)
	s.remembered = &v1alpha1.ServiceSetList{}
	ts.Check(s.client.List(s.ctx, s.remembered, client.InNamespace(s.namespace)))
}

// kept goes through all that has happened to the ServiceSets since remember: at no moment were services in none of those of a cluster.
func kept(ts *testscript.TestScript, neg bool, args []string) {
	never(ts, neg, args, 2)
	s := scenarioOf(ts)
	for _, service := range args[1:] {
		h := history{cluster: args[0], service: service, seen: map[string]string{}, has: map[string]bool{}}
		if err := h.follow(s.ctx, s.client, s.remembered); err != nil {
			ts.Fatalf("%v", err)
		}
	}
}

// history is which ServiceSets of a cluster have a service, as time goes by.
type history struct {
	cluster, service string
	seen             map[string]string // resource versions by the name of the set
	has              map[string]bool
}

// follow goes from a list of the past to what is there now.
func (h *history) follow(ctx context.Context, c client.WithWatch, from *v1alpha1.ServiceSetList) error {
	for i := range from.Items {
		h.note(&from.Items[i])
	}
	now, namespace := &v1alpha1.ServiceSetList{}, client.InNamespace(from.Items[0].Namespace)
	if err := c.List(ctx, now, namespace); err != nil {
		return err
	}
	events, err := c.Watch(ctx, &v1alpha1.ServiceSetList{}, namespace, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: from.ResourceVersion}})
	if err != nil {
		return err
	}
	defer events.Stop()
	for !h.reached(now) {
		event, open := <-events.ResultChan()
		set, ok := event.Object.(*v1alpha1.ServiceSet)
		if !open || !ok {
			return fmt.Errorf("the past of the ServiceSets is not known any more: %v", event.Object)
		}
		h.note(set)
		if event.Type == watch.Deleted {
			delete(h.has, set.Name)
		}
		if !slices.Contains(slices.Collect(maps.Values(h.has)), true) {
			return fmt.Errorf("%s was in no ServiceSet of %s after a change of %s, which then had %v", h.service, h.cluster, set.Name, listed(set))
		}
	}
	return nil
}

func (h *history) note(set *v1alpha1.ServiceSet) {
	h.seen[set.Name] = set.ResourceVersion
	if set.Spec.Cluster == h.cluster {
		h.has[set.Name] = slices.ContainsFunc(set.Spec.Services, func(e v1alpha1.ServiceWithValues) bool {
			return shortName(e.Namespace, e.Name) == h.service
		})
	}
}

// reached tells whether all that is there now has been seen.
func (h *history) reached(now *v1alpha1.ServiceSetList) bool {
	for i := range now.Items {
		if h.seen[now.Items[i].Name] != now.Items[i].ResourceVersion {
			return false
		}
	}
	return true
}
