package manifest

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// ownerOf says whose an object is that is not of the service, or nothing if it is nobody's.
func ownerOf(object client.Object) string {
	labels, annotations := object.GetLabels(), object.GetAnnotations()
	if controller := metav1.GetControllerOf(object); controller != nil {
		return fmt.Sprintf("%s %s, which controls it", controller.Kind, controller.Name)
	}
	if service := serviceOf(labels); service != "" {
		return fmt.Sprintf("the service %s of %s", service, carrier.Whose(object))
	}
	for _, mark := range []struct{ format, value string }{
		{"the Helm release %s", annotations["meta.helm.sh/release-name"]},
		{"the Kustomization %s of Flux", labels["kustomize.toolkit.fluxcd.io/name"]},
		{"the HelmRelease %s of Flux", labels["helm.toolkit.fluxcd.io/name"]},
		{"the Application %s of Argo CD", labels["argocd.argoproj.io/instance"]},
		{"the Application %s of Argo CD", annotations["argocd.argoproj.io/tracking-id"]},
		{"the apply set %s of kubectl", labels["applyset.kubernetes.io/part-of"]},
		{"the inventory %s", annotations["config.k8s.io/owning-inventory"]},
		{"the operator of %s", annotations["operatorkit.io/owner"]},
	} {
		if mark.value != "" {
			return fmt.Sprintf(mark.format, mark.value)
		}
	}
	return ""
}

func serviceOf(labels map[string]string) string {
	if labels[carrier.ServiceLabel] == "" && labels[carrier.OwnerLabel] == "" {
		return ""
	}
	return labels[carrier.ServiceNamespaceLabel] + "/" + labels[carrier.ServiceLabel]
}
