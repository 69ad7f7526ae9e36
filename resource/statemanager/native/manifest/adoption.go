package manifest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/internal/serverside"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// adoptable tells whether an object of somebody else may be taken over: not what a controller, another service, a Helm release or another
// operator has.
func adoptable(object client.Object) bool {
	annotations := object.GetAnnotations()
	return metav1.GetControllerOf(object) == nil && serviceOf(object.GetLabels()) == "" &&
		annotations["meta.helm.sh/release-name"] == "" && annotations["operatorkit.io/owner"] == ""
}

// writtenBy are fields that those have who put whole objects onto clusters: Flux, Argo CD and kubectl.
var writtenBy = [][]string{
	{"f:metadata", "f:labels", "f:kustomize.toolkit.fluxcd.io/name"},
	{"f:metadata", "f:labels", "f:argocd.argoproj.io/instance"},
	{"f:metadata", "f:labels", "f:applyset.kubernetes.io/part-of"},
	{"f:metadata", "f:annotations", "f:argocd.argoproj.io/tracking-id"},
	{"f:metadata", "f:annotations", "f:config.k8s.io/owning-inventory"},
	{"f:metadata", "f:annotations", "f:kubectl.kubernetes.io/last-applied-configuration"},
}

// kubectlApply is the field manager of kubectl apply --server-side, which leaves no mark.
var kubectlApply = carrier.FieldManager{Name: "kubectl", Operation: metav1.ManagedFieldsOperationApply}

// planAdoption returns the step that gives an object of somebody else the marks of the service, and what applying it changes then.
func planAdoption(
	ctx context.Context, cluster carrier.Cluster, service *carrier.Service, have *unstructured.Unstructured, m manifest, pending bool,
) (s step, later string, err error) {
	now, fields, err := difference(ctx, cluster, service, have, m, true)
	if pending && carrier.AwaitsDefinition(err) {
		now, err = have, nil
	}
	if now == nil || err != nil {
		return step{}, "", err
	}
	marked := now.DeepCopy()
	carrier.Dress(marked, service)
	s = step{
		action: plan.Update, object: referTo(m.Object), manifest: m, adopts: true, uid: now.GetUID(), version: now.GetResourceVersion(),
		fields: m.hide(plan.Diff(serverside.Stable(now.Object), serverside.Stable(marked.Object))), reason: "taken over as it is",
	}
	if owner := ownerOf(now); owner != "" {
		s.reason += ", from " + owner
	}
	s.from = carrier.ManagersWith(now, service.Owner.FieldManager(), writtenBy...)
	if slices.ContainsFunc(now.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return kubectlApply == carrier.FieldManager{Name: entry.Manager, Operation: entry.Operation} && entry.Subresource == ""
	}) && !slices.Contains(s.from, kubectlApply) {
		s.from = append(s.from, kubectlApply)
	}
	var paths []string
	for _, field := range fields {
		if !plan.Below(field.Path, ours...) {
			paths = append(paths, field.Path)
		}
	}
	if len(paths) > 0 {
		later = fmt.Sprintf("%s gets another %s when it is taken over", s.object, strings.Join(shorten(paths), ", "))
	}
	return s, later, nil
}

// takeOver gives an object, as it was planned, the marks of the service, and what others have applied of it to the service's field manager.
func takeOver(ctx context.Context, cluster carrier.Cluster, service *carrier.Service, s step) error {
	object := s.manifest.Object.DeepCopy()
	object.SetUID(s.uid)
	object.SetResourceVersion(s.version)
	if err := carrier.TakeOver(ctx, cluster.Client(), service, object, s.from, service.Owner.FieldManager()); err != nil {
		return fault("take over", s.manifest, err)
	}
	return nil
}
