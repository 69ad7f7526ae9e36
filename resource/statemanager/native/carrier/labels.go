package carrier

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/internal/normalize"
)

// Labels and annotations of what is put onto clusters.
const (
	// OwnerLabel has the ID of the Owner. Everything that is put onto a cluster has it: objects, releases and inventories. It
	// decides whose something is, and watches select by it.
	OwnerLabel = "services.operatorkit.io/owner"
	// OwnerAnnotation says in words what OwnerLabel stands for.
	OwnerAnnotation = "services.operatorkit.io/owned-by"
	// ServiceLabel and ServiceNamespaceLabel have the name and the namespace of the service.
	ServiceLabel          = "services.operatorkit.io/service"
	ServiceNamespaceLabel = "services.operatorkit.io/service-namespace"
	// PruneAnnotation keeps an object on its cluster when it is not part of its service any more, or when the service is
	// taken away: its value is "disabled".
	PruneAnnotation = "services.operatorkit.io/prune"
)

// LabelsOf returns the labels of everything that belongs to a service.
func LabelsOf(service *Service) map[string]string {
	return map[string]string{
		OwnerLabel: service.Owner.ID(), ServiceLabel: service.Key.Name, ServiceNamespaceLabel: service.Key.Namespace,
	}
}

// Dress puts the marks of a service onto an object.
func Dress(object client.Object, service *Service) {
	normalize.Mark(object, LabelsOf(service), map[string]string{OwnerAnnotation: service.Owner.String()})
}

// Marking is a patch that sets labels and annotations of an object, or takes those away that are null, if it is still the one with the UID
// and the resource version. Nil leaves them as they are.
func Marking(seen client.Object, version string, labels, annotations any) client.Patch {
	metadata := map[string]any{"uid": seen.GetUID(), "resourceVersion": version}
	if labels != nil {
		metadata["labels"] = labels
	}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	// Maps of texts can always be encoded.
	body, _ := json.Marshal(map[string]any{"metadata": metadata})
	return client.RawPatch(types.MergePatchType, body)
}
