package sveltos

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/internal/cut"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/sveltos/v1beta1"
)

// maxMessage is how long a message of Sveltos may be in a status, in bytes.
const maxMessage = 4096

// states are those of all services: of what the profile should have, of what it has and should not, and of what is desired and can't be
// expressed.
func (m *Manager) states(s *situation) []v1alpha1.ServiceState {
	states := statemanager.NewStates(s.set.ServiceSet, m.config.Clock.Now())
	for _, p := range s.wants {
		phase, message := v1alpha1.ServiceStateDeleting, ""
		if s.order.Entry(p.key()) != nil {
			phase, message = s.phase(p)
		}
		if phase == v1alpha1.ServiceStateDeployed && p.entry.uninstalls() {
			phase = v1alpha1.ServiceStateDeleted
		}
		s.enter(states, p, phase, message)
	}
	for key, err := range s.errs {
		if find(s.wants, key) == nil {
			s.enter(states, placed{record: s.recordOf(key)}, v1alpha1.ServiceStateFailed, err.Error())
		}
	}
	for _, before := range s.set.ServiceSet.Status.Services {
		key := before.Key()
		if _, known := states.Entered()[key]; !known && s.order.Entry(key) == nil && !s.gone(key, before.Type) {
			p := placed{record: record{Namespace: key.Namespace, Name: key.Name, Template: before.Template, Version: before.Version}}
			s.enter(states, p, v1alpha1.ServiceStateDeleting, "")
		}
	}
	return states.Sorted()
}

// recordOf is what is known of a service that is desired and has no entry in the profile.
func (s *situation) recordOf(key client.ObjectKey) record {
	r := record{Namespace: key.Namespace, Name: key.Name}
	if e := s.order.Entry(key); e != nil {
		r.Template, r.Version = e.Template, e.Version
	}
	return r
}

// enter makes the state of a service.
func (s *situation) enter(states *statemanager.States, p placed, phase v1alpha1.ServicePhase, message string) {
	state := states.Begin(p.key())
	state.Template, state.Version, state.State, state.FailureMessage = p.Template, p.Version, phase, shortened(message)
	if p.Feature != "" {
		state.Type = p.entry.serviceType()
	}
	if err := s.errs[p.key()]; err != nil && (phase == v1alpha1.ServiceStateDeployed || phase == v1alpha1.ServiceStateDeleted) {
		// What runs is the entry from before.
		state.State, state.FailureMessage = v1alpha1.ServiceStateFailed, shortened(err.Error())
		r := s.recordOf(p.key())
		state.Template, state.Version = r.Template, r.Version
	}
	switch state.State {
	case v1alpha1.ServiceStateDeleted:
		state.LastDeployed = nil
	case v1alpha1.ServiceStateDeployed:
		state.LastDeployed = &v1alpha1.LastDeployed{
			ServiceVersion: v1alpha1.ServiceVersion{Template: p.Template, Version: p.Version}, Fingerprint: p.Fingerprint,
		}
	}
	states.Enter(p.key(), state)
}

// phase says how a service is that the profile should have.
func (s *situation) phase(p placed) (v1alpha1.ServicePhase, string) {
	has := find(s.has, p.key())
	if has == nil || has.Fingerprint != p.Fingerprint {
		return v1alpha1.ServiceStateProvisioning, ""
	}
	unchanged := s.deployedBefore(p)
	if s.summary == nil || !copied(has.entry, &s.summary.Spec.ClusterProfileSpec) {
		return remaining(unchanged), ""
	}
	if message := s.summary.Status.FailureMessage; message != nil && *message != "" && !unchanged {
		return v1alpha1.ServiceStateFailed, *message
	}
	if p.entry.chart != nil {
		if phase, message, certain := s.releasePhase(p); certain {
			return phase, message
		}
	}
	feature := s.feature(p.Feature)
	switch {
	case feature == nil, !s.processed(feature):
		return remaining(unchanged), ""
	case feature.Status == v1beta1.FeatureProvisioned:
		return v1alpha1.ServiceStateDeployed, ""
	case unchanged:
		return v1alpha1.ServiceStateDeployed, ""
	case feature.Status == v1beta1.FeatureFailed || feature.Status == v1beta1.FeatureFailedNonRetriable:
		if p.entry.chart != nil && s.othersFailed(p) {
			return v1alpha1.ServiceStateProvisioning, ""
		}
		return v1alpha1.ServiceStateFailed, text(feature.FailureMessage)
	}
	return v1alpha1.ServiceStateProvisioning, ""
}

// releasePhase says how a release is, where Sveltos says so for it alone.
func (s *situation) releasePhase(p placed) (phase v1alpha1.ServicePhase, message string, certain bool) {
	release := releaseOf(s.summary, p.key())
	switch {
	case release == nil && p.entry.uninstalls():
		return "", "", false
	case release == nil:
		return v1alpha1.ServiceStateProvisioning, "", true
	case release.Status == v1beta1.ReleaseConflict:
		if holder := s.holder(p.key()); holder != "" {
			return v1alpha1.ServiceStateProvisioning, "", true
		}
		return v1alpha1.ServiceStateFailed, fmt.Sprintf(
			"another profile has this release: %s; give it up there, or give this one a higher priority", strings.TrimSpace(release.ConflictMessage)), true
	case text(release.FailureMessage) != "":
		return v1alpha1.ServiceStateFailed, text(release.FailureMessage), true
	}
	return "", "", false
}

// othersFailed tells whether another release has a message of its own, so that this one is only waiting behind it.
func (s *situation) othersFailed(p placed) bool {
	return slices.ContainsFunc(s.summary.Status.HelmReleaseSummaries, func(r v1beta1.HelmReleaseSummary) bool {
		return text(r.FailureMessage) != "" && (r.ReleaseNamespace != p.Namespace || r.ReleaseName != p.Name)
	})
}

// holder returns the name of another set of the cluster that still reports a service.
func (s *situation) holder(key client.ObjectKey) string {
	for _, other := range s.set.Others {
		if reported(other, key) {
			return other.Name
		}
	}
	return ""
}

// processed tells whether a feature is about the profile as it is now.
func (s *situation) processed(feature *v1beta1.FeatureSummary) bool {
	before := hashesOf(s.profile)[feature.FeatureID].Hash
	return len(before) == 0 || !bytes.Equal(before, feature.Hash)
}

// deployedBefore tells whether a service was seen Deployed just as it is.
func (s *situation) deployedBefore(p placed) bool {
	before := s.order.State(p.key())
	return before != nil && before.LastDeployed != nil && before.LastDeployed.Fingerprint == p.Fingerprint
}

// gone tells whether nothing is left of a service that the profile does not have any more.
func (s *situation) gone(key client.ObjectKey, of v1alpha1.ServiceType) bool {
	if s.summary == nil {
		return true
	}
	if find(s.has, key) != nil {
		return false
	}
	if of == v1alpha1.ServiceTypeHelm {
		release := releaseOf(s.summary, key)
		return release == nil || release.Status == v1beta1.ReleaseConflict
	}
	id := v1beta1.FeatureResources
	if of == v1alpha1.ServiceTypeKustomize {
		id = v1beta1.FeatureKustomize
	}
	feature := s.feature(id)
	if feature == nil {
		return true
	}
	done := feature.Status == v1beta1.FeatureProvisioned || feature.Status == v1beta1.FeatureRemoved
	return done && s.profile != nil && sameEntries(id, specOf(s.profile), &s.summary.Spec.ClusterProfileSpec) && s.processed(feature)
}

// remaining is the state of what Sveltos has not taken note of.
func remaining(unchanged bool) v1alpha1.ServicePhase {
	if unchanged {
		return v1alpha1.ServiceStateDeployed
	}
	return v1alpha1.ServiceStateProvisioning
}

// shortened is the first lines of a message, as far as a status has room for them.
func shortened(message string) string {
	return cut.Text(strings.TrimSpace(message), maxMessage)
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return strings.TrimSpace(*s)
}
