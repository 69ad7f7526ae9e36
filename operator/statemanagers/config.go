package statemanagers

import (
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/internal/faults"
	"github.com/operatorkit/operatorkit/operator/servicesets"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/helm"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/manifest"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// maxProvider is how long the name of a provider may be, in bytes: it is part of a finalizer and of a label.
const maxProvider = 40

// Config configures the frameworks. There has to be one state manager at least.
type Config struct {
	// SystemNamespace is where the ServiceSets of the management cluster are: that of servicesets.Config. In other namespaces those
	// without a cluster are held, see ReasonMisplaced. Default: servicesets.DefaultSystemNamespace.
	SystemNamespace string
	// Sources are shared with the operator of package servicesets. Default: its own, made by servicesets.NewSources.
	Sources *servicesets.Sources
	// Native is the state manager that the project brings: for Helm charts, kustomizations and manifests. Default: none.
	Native *NativeConfig
	// Managers are other state managers. Default: none.
	Managers []Manager
	// ValueKinds are kinds whose objects values templates may be filled with, beside ConfigMaps: see package templating. Whoever writes
	// service sets in a namespace can read the objects of these kinds there. The operator gets, lists and watches them, and they have to be
	// installed before it starts. Secrets can't be among them. Default: none.
	ValueKinds []schema.GroupVersionKind
	// LeaveProviders does not create StateManagementProviders that are missing. Default: false, and each state manager has
	// one, which asks for the label ProviderLabel with the provider's name.
	LeaveProviders bool
}

// Manager is a state manager, and what makes it known.
type Manager struct {
	// Provider is the name of its StateManagementProvider. It is a part of the framework's name, and so of all marks. When it
	// changes, the old one goes to FormerProviders. Required.
	Provider string
	// FormerProviders are names that the provider had before. ServiceSets can't change their provider's name: those that have a
	// former one keep it, with the StateManagementProvider of that name, and are carried out all the same. What stands under it is
	// taken over as it is. A former name stays here for as long as a ServiceSet has it. Default: none.
	FormerProviders []string
	// StateManager carries the ServiceSets out. Required.
	StateManager statemanager.StateManager
	// Watches are further sources whose changes concern ServiceSets, such as that of objects which the state manager makes.
	// The map functions return keys of ServiceSets; those of other providers are passed over. Default: none.
	Watches []framework.Watch
}

// names are the present name of the provider, and the former ones.
func (m *Manager) names() []string { return append([]string{m.Provider}, m.FormerProviders...) }

// has tells whether a set is one of the provider, be it under a former name.
func (m *Manager) has(set *v1alpha1.ServiceSet) bool {
	return slices.Contains(m.names(), providerOf(set))
}

// NativeConfig configures the native state manager. The zero value is good for production.
type NativeConfig struct {
	// Provider is the name of its StateManagementProvider, and FormerProviders are those that it had before: see Manager. Default:
	// v1alpha1.DefaultStateManagementProvider ("native"), and none.
	Provider        string
	FormerProviders []string
	// Origin stands for the management cluster in the marks on clusters, see native.Config. Default: the UID of the management
	// cluster's namespace kube-system.
	Origin string
	// Fetch configures the cache of charts and archives, and its limits, and wires in sources of Git and signatures of cosign. Default: see
	// fetch.Config.
	Fetch fetch.Config
	// Helm and Manifests configure those who put services onto clusters. Default: see helm.Config and manifest.Config.
	Helm      helm.Config
	Manifests manifest.Config
	// DefaultServiceAccount is the service account, on target clusters, of services that name none, see native.Config. Default: none: they
	// have the rights of the kubeconfig.
	DefaultServiceAccount string
	// HealthChecks reads the healthCheckExprs of services: health.New() of resource/statemanager/native/health, which links CEL. Default: none,
	// and services with them are refused.
	HealthChecks carrier.HealthChecks
	// KindTimeout is how long services wait for kinds that their cluster does not have, see native.Config. Default: five minutes.
	KindTimeout time.Duration
	// Targets configures how clusters are reached.
	Targets Targets
}

// Targets configures how clusters are reached. What is zero has the default of target.Config, which says more.
type Targets struct {
	// QPS and Burst limit the requests to one cluster.
	QPS   float32
	Burst int
	// RequestTimeout is how long a request may take, and ConnectTimeout how long connecting may.
	RequestTimeout, ConnectTimeout time.Duration
	// IdleTimeout is how long a cluster without services is kept.
	IdleTimeout time.Duration
	// ProbeInterval is after how long without an answer a cluster is probed. MinRetry and MaxRetry limit the pauses between
	// probes of one that does not answer.
	ProbeInterval, MinRetry, MaxRetry time.Duration
	// WrapTransport goes around the requests to a cluster, behind the Fence of the Dependencies: for traces, for faults in tests.
	WrapTransport func(cluster target.Key, next http.RoundTripper) http.RoundTripper
}

// complete fills in the defaults. The error is one for which framework.IsInvalidConfig holds.
func (c *Config) complete() error {
	if c.SystemNamespace == "" {
		c.SystemNamespace = servicesets.DefaultSystemNamespace
	}
	var wrong faults.List
	if msgs := validation.IsDNS1123Label(c.SystemNamespace); len(msgs) > 0 {
		wrong.Add("SystemNamespace %q is not the name of a namespace: %s", c.SystemNamespace, msgs[0])
	}
	var providers []string
	if c.Native != nil {
		native := *c.Native
		if native.Provider == "" {
			native.Provider = v1alpha1.DefaultStateManagementProvider
		}
		c.Native = &native
		providers = append(append(providers, native.Provider), native.FormerProviders...)
	}
	for i, m := range c.Managers {
		providers = append(append(providers, m.Provider), m.FormerProviders...)
		wrong.If(m.StateManager == nil, "Managers[%d].StateManager must not be nil", i)
	}
	wrong.If(len(providers) == 0, "Native or Managers must be set")
	for i, kind := range c.ValueKinds {
		wrong.If(kind.Version == "" || kind.Kind == "", "ValueKinds[%d] needs a version and a kind", i)
		wrong.If(kind == corev1.SchemeGroupVersion.WithKind(statemanager.KindSecret), "ValueKinds[%d] are Secrets: their values come by valuesFrom", i)
		wrong.If(slices.Contains(c.ValueKinds[:i], kind) || kind == corev1.SchemeGroupVersion.WithKind(statemanager.KindConfigMap), "ValueKinds[%d] is there already", i)
	}
	for i, p := range providers {
		if msgs := validation.IsDNS1123Label(p); len(msgs) > 0 || len(p) > maxProvider {
			wrong.Add("the provider's name %q has to be at most %d lower-case letters, digits and '-'", p, maxProvider)
		}
		wrong.If(slices.Contains(providers[:i], p), "the provider's name %q is there twice", p)
	}
	return wrong.Of("statemanagers.Config")
}
