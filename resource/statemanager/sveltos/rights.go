package sveltos

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/sveltos/v1beta1"
)

// Rights implements framework.RightsLister: those on the management cluster, but for the kinds that values templates are filled with beside
// ConfigMaps.
func (m *Manager) Rights() []framework.Right {
	written, compared := []string{"get", "create", "patch", "delete"}, []string{"patch"}
	return []framework.Right{
		{Kind: v1beta1.ConfigGroupVersion.WithKind(v1beta1.ProfileKind), Verbs: written, DryRun: compared},
		{Kind: v1beta1.ConfigGroupVersion.WithKind(v1beta1.ClusterProfileKind), Verbs: written, DryRun: compared},
		{Kind: v1beta1.LibGroupVersion.WithKind(v1beta1.SveltosClusterKind), Verbs: []string{"get", "create", "patch"}},
		{Kind: corev1.SchemeGroupVersion.WithKind(statemanager.KindConfigMap), Verbs: []string{"get"}},
	}
}
