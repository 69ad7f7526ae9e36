package carrier

import (
	"crypto/sha256"
	"encoding/hex"
)

// Labels and annotations of what is put onto clusters.
const (
	// OwnerLabel has the OwnerID of the ServiceSet. Everything that is put onto a cluster has it: objects, releases and
	// inventories. Watches select by it.
	OwnerLabel = "services.operatorkit.io/owner"
	// ServiceLabel and ServiceNamespaceLabel have the name and the namespace of the service.
	ServiceLabel          = "services.operatorkit.io/service"
	ServiceNamespaceLabel = "services.operatorkit.io/service-namespace"
	// PruneAnnotation keeps an object on its cluster when it is not part of its service any more, or when the service is
	// taken away: its value is "disabled".
	PruneAnnotation = "services.operatorkit.io/prune"
	// FieldManager is the field manager of manifests.
	FieldManager = "operatorkit-native"
)

// ID returns what stands for an owner in OwnerLabel: 32 hexadecimal digits, of the ServiceSet's namespace and name.
func (o Owner) ID() string {
	sum := sha256.Sum256([]byte(o.Namespace + "/" + o.Name))
	return hex.EncodeToString(sum[:16])
}

// LabelsOf returns the labels of everything that belongs to a service.
func LabelsOf(service *Service) map[string]string {
	return map[string]string{
		OwnerLabel: service.Owner.ID(), ServiceLabel: service.Key.Name, ServiceNamespaceLabel: service.Key.Namespace,
	}
}
