package machines

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// recordPause is how long a job is left after its completion was written, until the operator has surely read that.
const recordPause = time.Second

// completed reports whether the status says of a job that a version of it has completed.
func completed(svc *v1alpha1.MachineService, v v1alpha1.Version) bool {
	return svc.Spec.Mode == api.ServiceModeJob && isDeployed(svc, v)
}

func isDeployed(svc *v1alpha1.MachineService, v v1alpha1.Version) bool {
	return svc.Status.Deployed != nil && *svc.Status.Deployed == v
}

// isReady reports whether a service is Ready for the spec that it has.
func isReady(svc *v1alpha1.MachineService) bool {
	ready := meta.FindStatusCondition(svc.Status.Conditions, ConditionReady)
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == svc.Generation && svc.DeletionTimestamp == nil
}

// waitsFor says which services a version waits for. One that was deployed once waits for none.
func (f *serviceFramework) waitsFor(svc *v1alpha1.MachineService, v v1alpha1.Version) string {
	if isDeployed(svc, v) {
		return ""
	}
	var waits []string
	for _, name := range svc.Spec.DependsOn {
		obj, exists, err := f.services.Get(informer.Key{Namespace: svc.Namespace, Name: name})
		switch {
		case err != nil || !exists:
			waits = append(waits, "service "+name+", which does not exist")
		case isReady(obj.(*v1alpha1.MachineService)):
		case obj.(*v1alpha1.MachineService).Spec.Mode == api.ServiceModeJob:
			waits = append(waits, "job "+name+", which has not completed")
		default:
			waits = append(waits, "service "+name+", which is not ready")
		}
	}
	if len(waits) == 0 {
		return ""
	}
	return "waits for " + strings.Join(waits, ", ")
}

// dependents returns the services that depend on one.
func (f *serviceFramework) dependents(ctx context.Context, obj any) []informer.Key {
	on := obj.(client.Object)
	return f.servicesThat(ctx, on.GetNamespace(), func(svc *v1alpha1.MachineService) bool {
		return slices.Contains(svc.Spec.DependsOn, on.GetName())
	})
}
