package sveltos

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/sveltos/v1beta1"
)

// read gets an object as it is now; false if there is none.
func (m *Manager) read(ctx context.Context, key client.ObjectKey, into client.Object) (bool, error) {
	err := m.config.Client.Get(ctx, key, into)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %s %s: %w", kindOf(into), key, err)
	}
	gvk, err := apiutil.GVKForObject(into, m.config.Client.Scheme())
	into.GetObjectKind().SetGroupVersionKind(gvk)
	return true, err
}

// summaryOf returns the ClusterSummary of a set's profile on its cluster, or nil. Where the set says in no way that can be read which cluster
// that is, the profile does; and without one, there is a summary on no other cluster. profile may be nil.
func (m *Manager) summaryOf(ctx context.Context, set *v1alpha1.ServiceSet, profile client.Object) (*v1beta1.ClusterSummary, error) {
	ref, _, err := m.clusterRef(set)
	known := err == nil
	if !known && profile != nil && len(specOf(profile).ClusterRefs) > 0 {
		ref, known = specOf(profile).ClusterRefs[0], true
	}
	label := v1beta1.ProfileLabel
	if set.Spec.Cluster == "" {
		label = v1beta1.ClusterProfileLabel
	}
	list := &v1beta1.ClusterSummaryList{}
	err = m.config.Client.List(ctx, list, client.InNamespace(ref.Namespace), client.MatchingLabels{label: profileKey(set).Name})
	if err != nil {
		return nil, fmt.Errorf("list the ClusterSummaries of profile %s: %w", profileKey(set), err)
	}
	for i := range list.Items {
		if s := &list.Items[i]; !known || s.Spec.ClusterNamespace == ref.Namespace && s.Spec.ClusterName == ref.Name {
			return s, nil
		}
	}
	return nil, nil
}

// desired returns the profile as it should be.
func (m *Manager) desired(ctx context.Context, s *situation) (client.Object, error) {
	set := s.set.ServiceSet
	spec, err := m.frame(s.set)
	switch {
	case err != nil && set.DeletionTimestamp != nil && s.profile != nil:
		// What is taken away is taken from where it was put.
		spec = *specOf(s.profile).DeepCopy()
		spec.HelmCharts, spec.KustomizationRefs, spec.PolicyRefs = nil, nil, nil
	case err != nil:
		return nil, err
	}
	for _, p := range s.wants {
		p.entry.addTo(&spec)
	}
	records, err := recordsOf(s.wants)
	if err != nil {
		return nil, fmt.Errorf("annotate the profile with its services: %w", err)
	}
	hashes, err := s.hashes()
	if err != nil {
		return nil, fmt.Errorf("annotate the profile with the hashes of its features: %w", err)
	}
	profile := newProfile(set)
	*specOf(profile) = spec
	key := profileKey(set)
	profile.SetNamespace(key.Namespace)
	profile.SetName(key.Name)
	keeper, _ := m.keepers(ctx)
	owner := ownerOf(keeper, set)
	profile.SetLabels(map[string]string{carrier.OwnerLabel: owner.ID()})
	profile.SetAnnotations(map[string]string{
		carrier.OwnerAnnotation: owner.String(), SetAnnotation: ownerText(set), ServicesAnnotation: records, HashesAnnotation: hashes,
	})
	gvk, err := apiutil.GVKForObject(profile, m.config.Client.Scheme())
	profile.GetObjectKind().SetGroupVersionKind(gvk)
	return profile, err
}

// hashNote is what the annotation has of one feature: a hash, and the entries of the profile that it is the hash of.
type hashNote struct {
	Hash    []byte `json:"hash"`
	Entries string `json:"entries"`
}

// hashes is the annotation with the hashes of the features as they are before the profile is written. They stay as they are
// while the entries of the feature do. There is none where the entries become again what Sveltos has processed: it reports the same
// hash then, and rightly so.
func (s *situation) hashes() (string, error) {
	before := map[v1beta1.FeatureID]hashNote{}
	if s.profile != nil {
		before = hashesOf(s.profile)
	}
	after := map[v1beta1.FeatureID]hashNote{}
	for _, id := range []v1beta1.FeatureID{v1beta1.FeatureHelm, v1beta1.FeatureKustomize, v1beta1.FeatureResources} {
		has, err := statemanager.Fingerprint(fingerprints(s.has, id))
		if err != nil {
			return "", err
		}
		wants, err := statemanager.Fingerprint(fingerprints(s.wants, id))
		if err != nil {
			return "", err
		}
		note := before[id]
		if f := s.feature(id); has != wants && f != nil && s.processed(f) {
			note = hashNote{Hash: f.Hash, Entries: has}
		}
		if len(note.Hash) > 0 && note.Entries != wants {
			after[id] = note
		}
	}
	raw, err := json.Marshal(after)
	return string(raw), err
}

// feature returns what Sveltos says of a feature, or nil.
func (s *situation) feature(id v1beta1.FeatureID) *v1beta1.FeatureSummary {
	if s.summary == nil {
		return nil
	}
	return featureOf(s.summary, id)
}

// hashesOf reads the annotation of a profile.
func hashesOf(profile client.Object) map[v1beta1.FeatureID]hashNote {
	hashes := map[v1beta1.FeatureID]hashNote{}
	if err := json.Unmarshal([]byte(profile.GetAnnotations()[HashesAnnotation]), &hashes); err != nil {
		return map[v1beta1.FeatureID]hashNote{}
	}
	return hashes
}

// fingerprints are those of the services of a feature, in order.
func fingerprints(services []placed, id v1beta1.FeatureID) []string {
	all := []string{}
	for _, p := range services {
		if p.Feature == id {
			all = append(all, p.key().String()+" "+p.Fingerprint)
		}
	}
	return all
}

// copied tells whether a spec has an entry as it is.
func copied(e entry, spec *v1beta1.Spec) bool {
	switch e.feature() {
	case v1beta1.FeatureHelm:
		for i := range spec.HelmCharts {
			if equality.Semantic.DeepEqual(*e.chart, spec.HelmCharts[i]) {
				return true
			}
		}
	case v1beta1.FeatureKustomize:
		for i := range spec.KustomizationRefs {
			if equality.Semantic.DeepEqual(*e.kustomization, spec.KustomizationRefs[i]) {
				return true
			}
		}
	default:
		for i := range spec.PolicyRefs {
			if equality.Semantic.DeepEqual(*e.policy, spec.PolicyRefs[i]) {
				return true
			}
		}
	}
	return false
}

// sameEntries tells whether two specs have the same entries of a feature.
func sameEntries(id v1beta1.FeatureID, a, b *v1beta1.Spec) bool {
	switch id {
	case v1beta1.FeatureHelm:
		return equality.Semantic.DeepEqual(a.HelmCharts, b.HelmCharts)
	case v1beta1.FeatureKustomize:
		return equality.Semantic.DeepEqual(a.KustomizationRefs, b.KustomizationRefs)
	}
	return equality.Semantic.DeepEqual(a.PolicyRefs, b.PolicyRefs)
}

// ownerText names a set in an annotation.
func ownerText(set *v1alpha1.ServiceSet) string { return set.Namespace + "/" + set.Name }

func kindOf(obj client.Object) string {
	switch obj.(type) {
	case *v1beta1.Profile:
		return v1beta1.ProfileKind
	case *v1beta1.ClusterProfile:
		return v1beta1.ClusterProfileKind
	case *v1beta1.SveltosCluster:
		return v1beta1.SveltosClusterKind
	}
	return "object"
}

func paused(profile client.Object) bool {
	return profile.GetAnnotations()[v1beta1.PausedAnnotation] == "true"
}
