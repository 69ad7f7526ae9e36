package native

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// own finds out what carriers know the set by: the names are those of the framework that the context belongs to.
func (c *computation) own(ctx context.Context) error {
	origin, err := c.manager.originOf(ctx)
	if err != nil {
		return err
	}
	set := c.set.ServiceSet
	c.owner = carrier.Owner{Namespace: set.Namespace, Name: set.Name, UID: set.UID}
	c.owner.Keeper, c.former = carrier.Keepers(ctx, c.manager.Name(), c.manager.config.FormerNames, origin)
	return nil
}

// originOf returns what stands for the management cluster.
func (m *Manager) originOf(ctx context.Context) (string, error) {
	m.mu.Lock()
	origin := m.origin
	m.mu.Unlock()
	if origin != "" {
		return origin, nil
	}
	system := &metav1.PartialObjectMetadata{}
	system.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := m.config.Management.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return "", fmt.Errorf("tell the management cluster from others by the UID of its namespace %s (or set Origin): %w", metav1.NamespaceSystem, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.origin = string(system.UID)
	return m.origin, nil
}
