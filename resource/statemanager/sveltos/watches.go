package sveltos

import (
	"context"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/resource/statemanager/sveltos/v1beta1"
)

// Watches are the sources of what is made for ServiceSets, and of what Sveltos says about it, with the ServiceSets that they
// concern.
func (m *Manager) Watches() []framework.Watch {
	watches := []framework.Watch{{Source: m.summaries, Map: m.setOfSummary}}
	for _, profiles := range m.profiles {
		watches = append(watches, framework.Watch{Source: profiles, Map: setOfProfile})
	}
	return watches
}

func setOfProfile(_ context.Context, obj any) []informer.Key {
	profile, ok := obj.(client.Object)
	if !ok {
		return nil
	}
	namespace, name, ok := strings.Cut(profile.GetAnnotations()[SetAnnotation], "/")
	if !ok {
		return nil
	}
	return []informer.Key{{Namespace: namespace, Name: name}}
}

// setOfSummary finds the set through the profile that the summary is made for.
func (m *Manager) setOfSummary(ctx context.Context, obj any) []informer.Key {
	summary, ok := obj.(*v1beta1.ClusterSummary)
	if !ok {
		return nil
	}
	for i, label := range []string{v1beta1.ProfileLabel, v1beta1.ClusterProfileLabel} {
		key := informer.Key{Name: summary.Labels[label]}
		if key.Name == "" {
			continue
		}
		if i == 0 {
			key.Namespace = summary.Namespace
		}
		if profile, exists, err := m.profiles[i].Get(key); err == nil && exists {
			return setOfProfile(ctx, profile)
		}
	}
	return nil
}
