package servicesets

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/operatorkit/operatorkit/internal/cut"
	"github.com/operatorkit/operatorkit/operator/internal/statuses"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// The messages of all clusters in the status of a MultiClusterService have about maxClusterMessages bytes together, because an
// object can't have more than about a million, but each has room for minClusterMessage.
const (
	maxClusterMessages = 1 << 18
	minClusterMessage  = 64
)

// place is a cluster that has the services of a MultiClusterService, or should have them.
type place struct {
	v1alpha1.ClusterServicesStatus
	desired              bool // the cluster is selected
	progressing, blocked bool
	reason               string
}

// places returns the clusters of a MultiClusterService, the management cluster first, then by namespace and name.
func (s *services) places(ctx context.Context, mcs *v1alpha1.MultiClusterService, state *serviceState) ([]place, error) {
	clusters, err := s.clustersIn(ctx, "")
	if err != nil {
		return nil, err
	}
	var places []place
	switch {
	case state.management != nil:
		summary := state.management.summary(mcs.Generation)
		places = append(places, placeOf("", "", selfManaged(mcs), &summary))
	case selfManaged(mcs) && mcs.DeletionTimestamp == nil:
		places = append(places, placeOf("", "", true, nothingDesired(s.managementKey(mcs).Name)))
	}
	for i := range clusters {
		cd := &clusters[i]
		summary := summaryOf(cd, mcs.Name)
		selected := cd.DeletionTimestamp == nil && state.selector.Matches(labels.Set(cd.Labels))
		if !selected && summary == nil {
			continue
		}
		name := serviceset.ObjectKey(s.config.SystemNamespace, cd, mcs).Name
		switch {
		case selected && summary == nil && len(mcs.Spec.ServiceSpec.Services) == 0:
			summary = nothingDesired(name)
		case selected && (summary == nil || summary.ObservedGeneration != mcs.Generation):
			summary = notReconciled(mcs, summary, name)
		}
		places = append(places, placeOf(cd.Namespace, cd.Name, selected, summary))
	}
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return places, nil
}

// nothingDesired sums up a cluster that has no ServiceSet because there are no services.
func nothingDesired(name string) *v1alpha1.ServiceSetSummary {
	return &v1alpha1.ServiceSetSummary{Name: name, Reason: v1alpha1.ReasonDeployed}
}

// notReconciled sums up a cluster that does not know the MultiClusterService as it is now.
func notReconciled(mcs *v1alpha1.MultiClusterService, before *v1alpha1.ServiceSetSummary, name string) *v1alpha1.ServiceSetSummary {
	summary := &v1alpha1.ServiceSetSummary{
		Name: name, Progressing: true, Reason: v1alpha1.ReasonNotReconciled, Message: "the cluster has not taken note of the last change yet",
	}
	if before != nil {
		summary.Deployed = before.Deployed
	}
	for i := range mcs.Spec.ServiceSpec.Services {
		if !mcs.Spec.ServiceSpec.Services[i].Disable {
			summary.Desired++
		}
	}
	summary.Deployed = min(summary.Deployed, summary.Desired)
	return summary
}

func placeOf(namespace, name string, desired bool, s *v1alpha1.ServiceSetSummary) place {
	return place{
		ClusterServicesStatus: v1alpha1.ClusterServicesStatus{
			Namespace: namespace, Name: name, ServiceSet: s.Name, Desired: s.Desired, Deployed: s.Deployed, Message: s.Message,
		},
		desired: desired, progressing: s.Progressing, blocked: s.Blocked, reason: s.Reason,
	}
}

// ready tells whether all services run on the cluster as they are desired.
func (p *place) ready() bool {
	return p.Deployed == p.Desired && p.reason != v1alpha1.ReasonNotReconciled && p.reason != v1alpha1.ReasonSetNotReady && !p.blocked
}

// clusterName is what people call a cluster.
func clusterName(namespace, name string) string {
	if name == "" {
		return "the management cluster"
	}
	return namespace + "/" + name
}

// setStatus makes the status of a MultiClusterService. The times of conditions are those of the status that there is.
func (s *services) setStatus(ctx context.Context, mcs *v1alpha1.MultiClusterService, state *serviceState) error {
	places, err := s.places(ctx, mcs, state)
	if err != nil {
		return err
	}
	status := &mcs.Status
	status.ObservedGeneration = mcs.Generation
	status.Clusters = nil
	desired, deployed := 0, 0
	for i := range places {
		listed := places[i].ClusterServicesStatus
		listed.Message = cut.Text(listed.Message, max(maxClusterMessages/len(places), minClusterMessage))
		status.Clusters = append(status.Clusters, listed)
		if places[i].desired {
			desired++
			if places[i].ready() {
				deployed++
			}
		}
	}
	status.ClustersDeployed = fmt.Sprintf("%d/%d", deployed, desired)
	v := verdictOf(places, state.fault)
	if mcs.DeletionTimestamp != nil {
		v = deletionFrom(state)
	}
	status.Conditions = s.planned.Keep(mcs, statuses.SetConditions(status.Conditions, v.Conditions(mcs.Generation)))
	status.ServicesUpgradePaths, err = s.commonPaths(ctx, mcs, state)
	return err
}

// verdictOf says how services are on all clusters together.
func verdictOf(places []place, f *fault) statuses.Verdict {
	v := statuses.Verdict{ReadyWhy: v1alpha1.ReasonDeployed, Ready: f == nil}
	if f != nil {
		v.Block(f.reason, f.message)
	}
	desired := 0
	groups := map[string]*group{}
	for i := range places {
		p := &places[i]
		if p.desired {
			desired++
			v.Ready = v.Ready && p.ready()
		}
		if p.Message == "" || p.blocked && f != nil {
			continue
		}
		key := fmt.Sprint(p.blocked, p.progressing, p.reason, p.Message)
		if groups[key] == nil {
			groups[key] = &group{place: p, first: i}
		}
		groups[key].clusters = append(groups[key].clusters, clusterName(p.Namespace, p.Name))
	}
	for _, g := range slices.SortedFunc(maps.Values(groups), func(a, b *group) int { return cmp.Compare(a.first, b.first) }) {
		switch {
		case g.place.blocked:
			v.Block(g.place.reason, g.String())
		case g.place.progressing:
			v.Progress(g.place.reason, g.String())
		default:
			v.Waiting = append(v.Waiting, g.String())
		}
		if g.place.blocked && g.place.progressing {
			v.Progress(v1alpha1.ReasonInFlight, g.String())
		}
	}
	switch desired {
	case 0:
		v.AllWell = "no cluster is selected"
	default:
		v.AllWell = "all services are deployed on " + statuses.Count(desired, "cluster")
	}
	return v
}

// maxNamed is how many clusters a sentence names.
const maxNamed = 10

// group is clusters of which the same is to be said.
type group struct {
	place    *place
	first    int
	clusters []string
}

// String says what holds services up, and where.
func (g *group) String() string {
	named := g.clusters[:min(len(g.clusters), maxNamed)]
	text := g.place.Message + " (on " + strings.Join(named, ", ")
	if more := len(g.clusters) - len(named); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + ")"
}

// deletionFrom says what the deletion of a MultiClusterService waits for.
func deletionFrom(state *serviceState) statuses.Verdict {
	v := statuses.Verdict{}
	var left []string
	for i := range state.operations {
		o := &state.operations[i]
		left = append(left, clusterName(o.Key.Namespace, o.Owner.Set.Spec.Cluster))
		if o.Err != nil {
			f := faultOf(o.Err)
			v.Block(f.reason, f.message)
		}
	}
	slices.Sort(left)
	message := "waits until its service sets are gone from " + strings.Join(slices.Compact(left), ", ")
	if len(state.dependents) > 0 {
		message += "; those of MultiClusterService " + strings.Join(state.dependents, ", ") + " go first there, because of dependsOn"
	}
	v.Progress(v1alpha1.ReasonDeleting, message)
	return v
}
