package sveltos

import (
	"github.com/giantswarm/micrologger"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/notfound"
	"github.com/operatorkit/operatorkit/internal/faults"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/sveltos/v1beta1"
)

// DefaultName is the name of the state manager.
const DefaultName = "sveltos"

// The management cluster, as Sveltos calls it.
const (
	DefaultManagementNamespace = "mgmt"
	DefaultManagementName      = "mgmt"
)

// Config configures a Manager.
type Config struct {
	// Client reads and writes the management cluster, without a cache. Its scheme knows v1beta1. Required.
	Client client.WithWatch
	// Logger is for the sources. Required.
	Logger micrologger.Logger
	// Namespaces are those of the ServiceSets. Default: all.
	Namespaces []string
	// Management is the SveltosCluster of the management cluster. Default: mgmt in the namespace mgmt.
	Management client.ObjectKey
	// Name is the name of the state manager in logs and plans. It is a part of the marks on profiles, with the framework and the
	// operator. When it changes, the old one goes to FormerNames. Default: DefaultName.
	Name string
	// FormerNames are names that the state manager had before: their profiles are taken over as they are. Default: none.
	FormerNames []string
	// Clock tells the time. Default: the real one.
	Clock clock.PassiveClock
}

// Manager is a state manager on Sveltos. It is safe for concurrent use.
type Manager struct {
	config    Config
	profiles  [2]informer.Source
	summaries informer.Source
}

var _ statemanager.StateManager = (*Manager)(nil)

// New returns a Manager, or an error for which framework.IsInvalidConfig holds. It sends no request.
func New(config Config) (*Manager, error) {
	if err := config.complete(); err != nil {
		return nil, err
	}
	config.Client = notfound.CheckedWithWatch(config.Client)
	m := &Manager{config: config}
	ours, err := labels.NewRequirement(carrier.OwnerLabel, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	for _, of := range []struct {
		source     *informer.Source
		object     client.Object
		namespaces []string
		selector   labels.Selector
	}{
		{&m.profiles[0], &v1beta1.Profile{}, config.Namespaces, labels.NewSelector().Add(*ours)},
		{&m.profiles[1], &v1beta1.ClusterProfile{}, nil, labels.NewSelector().Add(*ours)},
		{&m.summaries, &v1beta1.ClusterSummary{}, config.withManagement(), nil},
	} {
		source, err := informer.NewKubernetes(informer.KubernetesConfig{
			Client: config.Client, Object: of.object, Namespaces: of.namespaces, LabelSelector: of.selector, Logger: config.Logger,
		})
		if err != nil {
			return nil, err
		}
		*of.source = source
	}
	return m, nil
}

func (c *Config) complete() error {
	var wrong faults.List
	if c.Client == nil {
		wrong.Add("the field Client must not be nil")
	} else if !c.Client.Scheme().Recognizes(v1beta1.ConfigGroupVersion.WithKind(v1beta1.ProfileKind)) {
		wrong.Add("the scheme of Client does not know Sveltos' kinds: call v1beta1.AddToScheme")
	}
	wrong.If(c.Logger == nil, "the field Logger must not be nil")
	if err := wrong.Of("sveltos.Config"); err != nil {
		return err
	}
	if c.Management == (client.ObjectKey{}) {
		c.Management = client.ObjectKey{Namespace: DefaultManagementNamespace, Name: DefaultManagementName}
	}
	if c.Name == "" {
		c.Name = DefaultName
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	return nil
}

// withManagement are the namespaces in which Sveltos makes ClusterSummaries.
func (c *Config) withManagement() []string {
	for _, n := range c.Namespaces {
		if n == c.Management.Namespace {
			return c.Namespaces
		}
	}
	if len(c.Namespaces) == 0 {
		return nil
	}
	return append(append([]string{}, c.Namespaces...), c.Management.Namespace)
}

// Name implements statemanager.Planner.
func (m *Manager) Name() string { return m.config.Name }

// Release implements statemanager.StateManager. Nothing is kept in memory for a set.
func (m *Manager) Release(client.ObjectKey) {}
