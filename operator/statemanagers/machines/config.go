package machines

import (
	"context"
	"fmt"
	"sync"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/faults"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch"
)

// DefaultName is the name of the state manager.
const DefaultName = "machines"

// Config configures a Manager.
type Config struct {
	// Client reads and writes the management cluster, without a cache. Its scheme knows v1alpha1. Required.
	Client client.WithWatch
	// Logger is for the source. Required.
	Logger micrologger.Logger
	// Namespaces are those of the ServiceSets, that of the sets without a cluster among them. Default: all.
	Namespaces []string
	// Fetcher gets the archives of templates. Default: one with the defaults of fetch.Config.
	Fetcher *fetch.Fetcher
	// Name is the name of the state manager in logs and plans. It is a part of the marks on MachineServices, with the framework and
	// the operator. When it changes, the old one goes to FormerNames. Default: DefaultName.
	Name string
	// FormerNames are names that the state manager had before: their MachineServices are taken over as they are. Default: none.
	FormerNames []string
	// Clock tells the time. Default: the real one.
	Clock clock.PassiveClock
}

// Manager is a state manager that makes MachineServices. It is safe for concurrent use for different sets.
type Manager struct {
	config   Config
	services *informer.Kubernetes

	mu       sync.Mutex
	failures map[client.ObjectKey]map[client.ObjectKey]failure
}

// failure is why the last write for a service failed.
type failure struct{ fingerprint, message string }

var (
	_ statemanager.StateManager = (*Manager)(nil)
	_ statemanager.Suspender    = (*Manager)(nil)
)

// New returns a Manager, or an error for which framework.IsInvalidConfig holds if it is about the configuration. It sends no request.
func New(config Config) (*Manager, error) {
	if err := config.complete(); err != nil {
		return nil, err
	}
	services, err := informer.NewKubernetes(informer.KubernetesConfig{
		Client: config.Client, Object: &v1alpha1.MachineService{}, Name: "machineservices of service sets", Namespaces: config.Namespaces,
		Logger: config.Logger,
	})
	if err != nil {
		return nil, err
	}
	return &Manager{config: config, services: services, failures: map[client.ObjectKey]map[client.ObjectKey]failure{}}, nil
}

func (c *Config) complete() error {
	var wrong faults.List
	if c.Client == nil {
		wrong.Add("the field Client must not be nil")
	} else if !c.Client.Scheme().Recognizes(v1alpha1.GroupVersion.WithKind(v1alpha1.MachineServiceKind)) {
		wrong.Add("the scheme of Client does not know MachineServices: call v1alpha1.AddToScheme of package operator/machines/v1alpha1")
	}
	wrong.If(c.Logger == nil, "the field Logger must not be nil")
	if err := wrong.Of("machines.Config"); err != nil {
		return err
	}
	if c.Name == "" {
		c.Name = DefaultName
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Fetcher != nil {
		return nil
	}
	var err error
	if c.Fetcher, err = fetch.New(fetch.Config{}); err != nil {
		return fmt.Errorf("%w: machines.Config: Fetcher: %w", framework.ErrInvalidConfig, err)
	}
	return nil
}

// Rights implements framework.RightsLister.
func (m *Manager) Rights() []framework.Right {
	read := []string{"get"}
	return []framework.Right{
		{
			Kind:  v1alpha1.GroupVersion.WithKind(v1alpha1.MachineServiceKind),
			Verbs: []string{"get", "list", "create", "patch", "delete"}, DryRun: []string{"create", "patch"},
		},
		{Kind: corev1.SchemeGroupVersion.WithKind(statemanager.KindConfigMap), Verbs: read},
		{Kind: corev1.SchemeGroupVersion.WithKind(statemanager.KindSecret), Verbs: read},
	}
}

// Name implements statemanager.Planner.
func (m *Manager) Name() string { return m.config.Name }

// Release implements statemanager.StateManager.
func (m *Manager) Release(set client.ObjectKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.failures, set)
}

// note remembers what became of the last write for a service. To lose it costs another try. It is told in other reconciliations, which may
// not know what is secret in it.
func (m *Manager) note(ctx context.Context, set, service client.ObjectKey, fingerprint string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		delete(m.failures[set], service)
		return
	}
	if m.failures[set] == nil {
		m.failures[set] = map[client.ObjectKey]failure{}
	}
	m.failures[set][service] = failure{fingerprint, statemanager.FirstLine(secretscontext.Scrub(ctx, err.Error()))}
}

// failed returns why the last write of a service with a fingerprint failed, or nothing.
func (m *Manager) failed(set, service client.ObjectKey, fingerprint string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.failures[set][service]; f.fingerprint == fingerprint {
		return f.message
	}
	return ""
}
