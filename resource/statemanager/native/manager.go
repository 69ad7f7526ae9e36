package native

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// Manager is the native state manager. It is safe for concurrent use for different sets.
type Manager struct {
	config Config

	mu   sync.Mutex
	sets map[client.ObjectKey]*memory
	// origin is Config.Origin, or else what the management cluster has answered.
	origin string
}

var _ statemanager.StateManager = (*Manager)(nil)

// New returns a Manager. The error names every faulty field and wraps framework.ErrInvalidConfig.
func New(config Config) (*Manager, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Manager{config: config, sets: map[client.ObjectKey]*memory{}, origin: config.Origin}, nil
}

// Rights implements framework.RightsLister: those on the management cluster, but for the kinds that values templates are filled with beside
// ConfigMaps.
func (m *Manager) Rights() []framework.Right {
	read := []string{"get"}
	rights := []framework.Right{
		{Kind: corev1.SchemeGroupVersion.WithKind(statemanager.KindConfigMap), Verbs: read},
		{Kind: corev1.SchemeGroupVersion.WithKind(statemanager.KindSecret), Verbs: read},
	}
	if m.config.Origin == "" {
		namespaces := corev1.SchemeGroupVersion.WithKind("Namespace")
		rights = append(rights, framework.Right{Kind: namespaces, Name: metav1.NamespaceSystem, ClusterScoped: true, Verbs: read})
	}
	return rights
}

// Name implements statemanager.Planner.
func (m *Manager) Name() string { return m.config.Name }

// Release implements statemanager.StateManager. A set that is released and computed again begins anew.
func (m *Manager) Release(key client.ObjectKey) {
	m.mu.Lock()
	memory := m.sets[key]
	delete(m.sets, key)
	m.mu.Unlock()
	if memory != nil {
		m.config.Clusters.Release(memory.cluster, key)
	}
}

// memoryOf returns what is kept of a set.
func (m *Manager) memoryOf(set *statemanager.Set) *memory {
	key := ownKey(set)
	m.mu.Lock()
	defer m.mu.Unlock()
	kept := m.sets[key]
	if kept == nil {
		kept = newMemory(&m.config, clusterOf(set.ServiceSet))
		m.sets[key] = kept
	}
	return kept
}

// ownKey returns the key of a set.
func ownKey(set *statemanager.Set) client.ObjectKey {
	return client.ObjectKeyFromObject(set.ServiceSet)
}

// clusterOf returns where the services of a set go.
func clusterOf(set *v1alpha1.ServiceSet) target.Key {
	if set.Spec.Cluster == "" {
		return target.Key{}
	}
	return target.Key{Namespace: set.Namespace, Name: set.Spec.Cluster}
}

// carrierOf returns who puts services of a type onto clusters.
func (m *Manager) carrierOf(kind v1alpha1.ServiceType) carrier.Carrier {
	if kind == v1alpha1.ServiceTypeHelm {
		return m.config.Helm
	}
	return m.config.Manifests
}
