package machines

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinesv1alpha1 "github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// Annotations of MachineServices that are made for services. The labels are those of package carrier.
const (
	// SetAnnotation has the namespace and the name of the ServiceSet, with a slash between.
	SetAnnotation = "services.operatorkit.io/service-set"
	// TemplateAnnotation and VersionAnnotation have the ServiceTemplate that it is made from, and its version.
	TemplateAnnotation = "services.operatorkit.io/template"
	VersionAnnotation  = "services.operatorkit.io/version"
	// FingerprintAnnotation stands for all that it is made from.
	FingerprintAnnotation = "services.operatorkit.io/fingerprint"
	// ConfidentialAnnotation has the paths of what comes from Secrets, with spaces between.
	ConfidentialAnnotation = "services.operatorkit.io/confidential"
	// SuspendedAnnotation is there while it is paused because its provider is suspended.
	SuspendedAnnotation = "services.operatorkit.io/suspended"
)

// placed is a MachineService as it is now. A nil one is none.
type placed struct {
	*unstructured.Unstructured
	service machinesv1alpha1.MachineService
	// keeper and former are who makes MachineServices here, and who it was under former names.
	keeper carrier.Keeper
	former []carrier.Keeper
}

// list reads the MachineServices of a namespace, by name.
func (m *Manager) list(ctx context.Context, namespace string) (map[string]*placed, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(machinesv1alpha1.GroupVersion.WithKind(machinesv1alpha1.MachineServiceKind + "List"))
	if err := m.config.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list the MachineServices of namespace %s: %w", namespace, err)
	}
	keeper, former := carrier.Keepers(ctx, m.Name(), m.config.FormerNames, "")
	there := make(map[string]*placed, len(list.Items))
	for i := range list.Items {
		p := &placed{Unstructured: &list.Items[i], keeper: keeper, former: former}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(p.Object, &p.service); err != nil {
			return nil, fmt.Errorf("decode MachineService %s/%s: %w", namespace, p.GetName(), err)
		}
		there[p.GetName()] = p
	}
	return there, nil
}

// owner returns the namespace and the name of the set that has it; empty if it was not made for one.
func (p *placed) owner() string {
	if p == nil {
		return ""
	}
	return p.GetAnnotations()[SetAnnotation]
}

// isOf tells whether a set has it, by this state manager, be it under a former name.
func (p *placed) isOf(set *v1alpha1.ServiceSet) bool {
	return p != nil && slices.ContainsFunc(append([]carrier.Keeper{p.keeper}, p.former...), func(k carrier.Keeper) bool {
		return ownerOf(k, set).Marked(p)
	})
}

// isRenamed tells whether a set has it under a former name of the state manager.
func (p *placed) isRenamed(set *v1alpha1.ServiceSet) bool {
	return p.isOf(set) && !ownerOf(p.keeper, set).Marked(p)
}

// key returns the service that it is made for: it has its name. The namespace is empty if somebody has removed the label that says it.
func (p *placed) key() client.ObjectKey {
	return client.ObjectKey{Namespace: p.GetLabels()[carrier.ServiceNamespaceLabel], Name: p.GetName()}
}

// isFor tells whether it is made for a service of the set that has it. One that does not say its namespace any more is for each with
// its name.
func (p *placed) isFor(key client.ObjectKey) bool {
	own := p.key()
	return own == key || own.Namespace == "" && own.Name == key.Name
}

// fingerprint returns what stands for all that it is made from.
func (p *placed) fingerprint() string {
	if p == nil {
		return ""
	}
	return p.GetAnnotations()[FingerprintAnnotation]
}

// confidential returns the paths of what came from Secrets when it was written.
func (p *placed) confidential() []string {
	if p == nil {
		return nil
	}
	return strings.Fields(p.GetAnnotations()[ConfidentialAnnotation])
}

// suspended tells whether it is paused because the provider was suspended.
func (p *placed) suspended() bool { return p != nil && p.GetAnnotations()[SuspendedAnnotation] != "" }

// ownerOf is the owner of what a keeper makes for a set.
func ownerOf(keeper carrier.Keeper, set *v1alpha1.ServiceSet) carrier.Owner {
	return carrier.Owner{Keeper: keeper, Namespace: set.Namespace, Name: set.Name, UID: set.UID}
}
