package machines

import (
	"context"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/internal/statuses"
	operatormachines "github.com/operatorkit/operatorkit/operator/machines"
	machinesv1alpha1 "github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// Watches are the sources of what is made for ServiceSets, with the ServiceSets that they concern.
func (m *Manager) Watches() []framework.Watch {
	return []framework.Watch{{Source: statuses.ChangesOf(m.services, "how they are", isNews), Map: setOf}}
}

// isNews tells whether a change of a MachineService is news for its set. How far a plan is, which its messages say about every second, is
// none.
func isNews(before, after client.Object) bool {
	x, y := before.(*machinesv1alpha1.MachineService), after.(*machinesv1alpha1.MachineService)
	if statuses.SpecDiffers(x, y) || !maps.Equal(x.Labels, y.Labels) || !maps.Equal(x.Annotations, y.Annotations) {
		return true
	}
	was, said := phaseOf(x)
	is, says := phaseOf(y)
	switch {
	case was != is, x.Status.ObservedGeneration != y.Status.ObservedGeneration, unseen(x) != unseen(y):
		return true
	case is == v1alpha1.ServiceStateProvisioning:
		return reasonOf(x) != reasonOf(y)
	}
	return said != says
}

// reasonOf returns why a MachineService is ready, or not.
func reasonOf(service *machinesv1alpha1.MachineService) string {
	ready := meta.FindStatusCondition(service.Status.Conditions, operatormachines.ConditionReady)
	if ready == nil {
		return ""
	}
	return ready.Reason
}

// setOf returns the set that has a MachineService.
func setOf(_ context.Context, obj any) []informer.Key {
	service, ok := obj.(client.Object)
	if !ok {
		return nil
	}
	namespace, name, ok := strings.Cut(service.GetAnnotations()[SetAnnotation], "/")
	if !ok {
		return nil
	}
	return []informer.Key{{Namespace: namespace, Name: name}}
}
