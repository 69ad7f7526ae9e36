package native

import (
	"time"

	"github.com/giantswarm/micrologger"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/faults"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// Config is what a Manager needs.
type Config struct {
	// Name is the name of the state manager. It is a part of the marks on clusters, with the framework and the operator: two
	// of one framework need two names. When it changes, the old one goes to FormerNames. Default:
	// v1alpha1.DefaultStateManagementProvider, "native".
	Name string
	// FormerNames are names that the state manager had before. What it has put onto clusters under them is taken over as it is.
	FormerNames []string
	// Origin stands for the management cluster in the marks on clusters: another one may have sets and operators of the same
	// names. One that takes the place of another, such as one restored from its backup, is given the Origin of that. Default:
	// the UID of the management cluster's namespace kube-system, which Management is asked for once.
	Origin string
	// Clusters are where services go. Their Config.Owners should be Owners of the ServiceSets, and their notices should reach the
	// sets. Required.
	Clusters *target.Clusters
	// Management reads the ConfigMaps and Secrets that sets are made from, and what their values templates are filled with. Required.
	Management client.Reader
	// ConfigMaps and Secrets are sources of those of the management cluster, of which only the metadata is looked at. With them
	// an object is read from Management only when it has changed. One that they don't hold is read each time. Default: none.
	ConfigMaps, Secrets informer.Source
	// Helm puts templates with charts onto clusters, Manifests those with kustomizations and manifests. Required.
	Helm, Manifests carrier.Carrier
	// Fetcher gets charts and archives. Required.
	Fetcher *fetch.Fetcher
	// DefaultServiceAccount is the serviceAccountName of services that have none: with it, no service is put onto a cluster with the rights
	// of its kubeconfig. Default: none.
	DefaultServiceAccount string
	// HealthChecks reads the healthCheckExprs of services: package health has one. Default: none, and services with them are refused.
	HealthChecks carrier.HealthChecks
	// KindTimeout is how long a service waits for a kind that its cluster does not have before it has Failed. It goes on when the kind comes,
	// also then. Default: five minutes.
	KindTimeout time.Duration
	// Logger is told what is begun and what fails. Required.
	Logger micrologger.Logger
	// Clock is for the times in states. Default: the clock of the machine.
	Clock clock.PassiveClock
}

// withDefaults validates the configuration and fills it.
func (c Config) withDefaults() (Config, error) {
	if c.Name == "" {
		c.Name = v1alpha1.DefaultStateManagementProvider
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	var wrong faults.List
	if name := c.DefaultServiceAccount; name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
		wrong.Add("DefaultServiceAccount is %q, which is no name of a service account", name)
	}
	wrong.If(c.KindTimeout < 0, "KindTimeout is %s: it must be positive, or zero for five minutes", c.KindTimeout)
	if c.KindTimeout == 0 {
		c.KindTimeout = 5 * time.Minute
	}
	for _, required := range []struct {
		field   string
		missing bool
	}{
		{"Clusters", c.Clusters == nil},
		{"Management", c.Management == nil},
		{"Helm", c.Helm == nil},
		{"Manifests", c.Manifests == nil},
		{"Fetcher", c.Fetcher == nil},
		{"Logger", c.Logger == nil},
	} {
		wrong.If(required.missing, "%s must be set", required.field)
	}
	if err := wrong.Of("native.Config"); err != nil {
		return c, err
	}
	return c, nil
}
