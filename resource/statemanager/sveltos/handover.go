package sveltos

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/sveltos/v1beta1"
)

// findTakers looks for sets that are to take services of the profile over. Sveltos takes a service from the cluster when the
// profile drops it, unless it knows that another profile asks for it. A set that uninstalls a service has nothing to take over.
func (m *Manager) findTakers(ctx context.Context, s *situation) error {
	for _, p := range s.has {
		if s.order.Entry(p.key()) != nil {
			continue
		}
		for _, other := range s.set.Others {
			if !s.order.Wants(other, p.key()) || !s.set.SharesProvider(other) {
				continue
			}
			known, err := m.knows(ctx, other, p.key())
			if err != nil {
				return err
			}
			if !known {
				s.takers[p.key()] = other.Name
			}
		}
	}
	return nil
}

// knows tells whether Sveltos has taken note that the profile of a set asks for a service.
func (m *Manager) knows(ctx context.Context, set *v1alpha1.ServiceSet, key client.ObjectKey) (bool, error) {
	profile := newProfile(set)
	if found, err := m.read(ctx, profileKey(set), profile); err != nil || !found || !m.isOurs(ctx, profile, set) {
		return false, err
	}
	service := find(placedIn(profile), key)
	if service == nil {
		return false, nil
	}
	summary, err := m.summaryOf(ctx, set, profile)
	if err != nil || summary == nil || !copied(service.entry, &summary.Spec.ClusterProfileSpec) {
		return false, err
	}
	return service.entry.chart == nil || releaseOf(summary, key) != nil, nil
}

// releaseOf returns what a summary says of a release, or nil.
func releaseOf(summary *v1beta1.ClusterSummary, key client.ObjectKey) *v1beta1.HelmReleaseSummary {
	for i := range summary.Status.HelmReleaseSummaries {
		r := &summary.Status.HelmReleaseSummaries[i]
		if r.ReleaseNamespace == key.Namespace && r.ReleaseName == key.Name {
			return r
		}
	}
	return nil
}

// featureOf returns what a summary says of a feature, or nil.
func featureOf(summary *v1beta1.ClusterSummary, id v1beta1.FeatureID) *v1beta1.FeatureSummary {
	for i := range summary.Status.FeatureSummaries {
		if summary.Status.FeatureSummaries[i].FeatureID == id {
			return &summary.Status.FeatureSummaries[i]
		}
	}
	return nil
}
