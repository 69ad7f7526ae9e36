package granter

import (
	"context"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/cut"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/internal/claims"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
	"github.com/operatorkit/operatorkit/resource/statusresource"
)

// healthPrefix tells Clusters apart from AccessRequests as users of connections. No name of an object has a slash.
const healthPrefix = "cluster/"

// newHealth makes the framework that tells in the status of Clusters whether they answer.
func (g *granter) newHealth(d *operator.Dependencies) (*framework.Framework, error) {
	g.observed = &claims.Claims{Client: g.client, Kind: v1alpha1.ClusterKind, Part: "health"}
	status, err := statusresource.New(statusresource.Config[*v1alpha1.Cluster]{Custom: true, Client: g.client, Logger: g.logger, Set: g.health})
	if err != nil {
		return nil, err
	}
	g.known.Subscribe(func(e informer.Event) {
		if e.Type == informer.Deleted {
			g.clusters.Release(e.Key, healthUser(e.Key))
		}
	})
	g.observed.Owner, err = d.NewFramework(framework.Config{
		Name: "cluster-health", Source: g.known, Resources: []framework.Resource{g.observed.Resource(), status}, DisableFinalizer: true,
		Watches: []framework.Watch{{Source: g.clusters.Notices(), Map: clusterOfNotice}},
	})
	return g.observed.Owner, err
}

// health makes the status of a Cluster, as far as it is the granter's.
func (g *granter) health(_ context.Context, c *v1alpha1.Cluster, _ *statusresource.Report) error {
	if c.DeletionTimestamp != nil {
		return nil
	}
	key := client.ObjectKeyFromObject(c)
	on, err := g.clusters.Acquire(key, healthUser(key))
	if err != nil {
		return err
	}
	ready := on.Condition()
	if was := apimeta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady); ready.Reason == string(target.Connecting) &&
		was != nil && was.ObservedGeneration == c.Generation {
		return nil // what an operator knows nothing of yet that has just begun is as it was last seen
	}
	ready.Type, ready.ObservedGeneration, ready.Message = v1alpha1.ConditionReady, c.Generation, cut.Text(ready.Message, maxMessage)
	apimeta.SetStatusCondition(&c.Status.Conditions, ready)
	c.Status.ObservedGeneration = c.Generation
	return nil
}

func healthUser(cluster informer.Key) target.Key {
	return target.Key{Namespace: cluster.Namespace, Name: healthPrefix + cluster.Name}
}

// clusterOfNotice is the map function from a notice to the Cluster whose health it is about.
func clusterOfNotice(_ context.Context, obj any) []informer.Key {
	if n, ok := obj.(*target.Notice); ok && strings.HasPrefix(n.User.Name, healthPrefix) {
		return []informer.Key{n.Cluster}
	}
	return nil
}
