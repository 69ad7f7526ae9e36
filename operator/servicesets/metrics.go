package servicesets

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// PrometheusSubsystem is the part of the names of all metrics after framework.PrometheusNamespace.
const PrometheusSubsystem = "servicesets"

// phases are the states of services, in the order in which they are lived through.
var phases = []v1alpha1.ServicePhase{
	v1alpha1.ServiceStatePending, v1alpha1.ServiceStateProvisioning, v1alpha1.ServiceStateDeployed, v1alpha1.ServiceStateFailed,
	v1alpha1.ServiceStateDeleting, v1alpha1.ServiceStateDeleted,
}

// collector reads the sources when metrics are asked for. It remembers nothing: what is gone from the sources is gone.
type collector struct {
	sources                                       *sources
	services, clusterBlocked, multiClusterBlocked *prometheus.Desc
}

func newCollector(s *sources) *collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(framework.PrometheusNamespace, PrometheusSubsystem, name), help, labels, nil)
	}
	return &collector{
		sources:             s,
		services:            desc("services", "Services on a cluster, by state. The labels of the management cluster are empty.", "cluster_namespace", "cluster", "state"),
		clusterBlocked:      desc("cluster_blocked_seconds", "How long a cluster has been blocked; 0 if it is not.", "cluster_namespace", "cluster"),
		multiClusterBlocked: desc("multiclusterservice_blocked_seconds", "How long a MultiClusterService has been blocked; 0 if it is not.", "multiclusterservice"),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.services
	ch <- c.clusterBlocked
	ch <- c.multiClusterBlocked
}

// Collect implements prometheus.Collector. What a source does not know yet is left out.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	ctx := context.Background()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	sets, err := c.sources.setsThat(ctx, func(*v1alpha1.ServiceSet) bool { return true })
	if err == nil {
		for at, states := range countStates(sets) {
			for _, phase := range phases {
				gauge(c.services, float64(states[phase]), at.Namespace, at.Name, string(phase))
			}
		}
	}
	clusters, _ := c.sources.clustersIn(ctx, "")
	for i := range clusters {
		gauge(c.clusterBlocked, blockedSeconds(clusters[i].Status.Conditions), clusters[i].Namespace, clusters[i].Name)
	}
	services, _ := c.sources.allServices(ctx)
	for i := range services {
		gauge(c.multiClusterBlocked, blockedSeconds(services[i].Status.Conditions), services[i].Name)
	}
}

// countStates counts services by cluster and state. A service that two ServiceSets have at the moment, because it goes from one
// owner to another, is one service.
func countStates(sets []*v1alpha1.ServiceSet) map[client.ObjectKey]map[v1alpha1.ServicePhase]int {
	states, phases := map[client.ObjectKey]map[client.ObjectKey]v1alpha1.ServicePhase{}, map[client.ObjectKey]v1alpha1.ServicePhase{}
	for _, set := range sets {
		at := clusterKey(set)
		clear(phases)
		addPhases(phases, set)
		if states[at] == nil {
			states[at] = map[client.ObjectKey]v1alpha1.ServicePhase{}
		}
		for service, phase := range phases {
			if known := states[at][service]; known == "" || known == v1alpha1.ServiceStatePending {
				states[at][service] = phase
			}
		}
	}
	counts := make(map[client.ObjectKey]map[v1alpha1.ServicePhase]int, len(states))
	for at, services := range states {
		counts[at] = map[v1alpha1.ServicePhase]int{}
		for _, phase := range services {
			counts[at][phase]++
		}
	}
	return counts
}

// addPhases adds the states of all services that a ServiceSet has, or takes away.
func addPhases(phases map[client.ObjectKey]v1alpha1.ServicePhase, set *v1alpha1.ServiceSet) {
	for i := range set.Spec.Services {
		phases[set.Spec.Services[i].Key()] = v1alpha1.ServiceStatePending
	}
	for i := range set.Spec.Removing {
		phases[set.Spec.Removing[i].Key()] = v1alpha1.ServiceStateDeleting
	}
	for i := range set.Status.Services {
		key := set.Status.Services[i].Key()
		if _, has := phases[key]; has {
			phases[key] = set.Status.Services[i].State
		}
	}
}

// clusterKey returns the namespace and the name of the cluster of a ServiceSet, empty for the management cluster.
func clusterKey(set *v1alpha1.ServiceSet) client.ObjectKey {
	if set.Spec.Cluster == "" {
		return client.ObjectKey{}
	}
	return client.ObjectKey{Namespace: set.Namespace, Name: set.Spec.Cluster}
}

func blockedSeconds(conditions []metav1.Condition) float64 {
	blocked := meta.FindStatusCondition(conditions, v1alpha1.ConditionBlocked)
	if blocked == nil || blocked.Status != metav1.ConditionTrue {
		return 0
	}
	return time.Since(blocked.LastTransitionTime.Time).Seconds()
}
