// Package namespaces says what the namespaces of the platform cluster are for, as far as access to clusters goes.
//
//   - One has the Clusters, and the Secrets with which they are managed. Nobody but the platform's own programs reads it.
//   - Every service provider has one of its own. What it asks for is there, and what is issued to it. A provider has rights in no other.
//
// So who asks follows from where something is asked for, and from nothing that the asker writes: no label, no annotation, no name. Whoever
// may write into the namespace of a provider is that provider, as far as the platform is concerned.
//
// The platform team makes the namespaces, and gives each provider its rights in its own (see package clusteraccess). Scheduler and granter make
// none, and deny what is asked for anywhere else, also beside the Clusters.
package namespaces

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/operatorkit/operatorkit/internal/faults"
)

// The defaults of a Layout.
const (
	// DefaultClusters is the namespace of the Clusters.
	DefaultClusters = "operatorkit-clusters"
	// ProviderPrefix is what the names of the providers' namespaces begin with.
	ProviderPrefix = "provider-"
)

// Of returns the namespace that a service provider has by default: "provider-postgres" for "postgres".
func Of(provider string) string { return ProviderPrefix + provider }

// Layout says which namespaces are for what. Scheduler and granter of a platform have the same one. The zero value has the defaults.
type Layout struct {
	// Clusters is the namespace of the Clusters, and of the Secrets with their kubeconfigs. It must not change while there are
	// Clusters. Default: DefaultClusters.
	Clusters string
	// Provider returns the name of the service provider whose namespace that is, and "" for a namespace that is no provider's. It is called
	// often, from several goroutines, and always says the same of a namespace. Default: what follows ProviderPrefix in its name.
	Provider func(namespace string) string
}

// Complete returns the layout with its defaults, or an error for which framework.IsInvalidConfig holds.
func (l Layout) Complete() (Layout, error) {
	if l.Clusters == "" {
		l.Clusters = DefaultClusters
	}
	if l.Provider == nil {
		l.Provider = prefixed
	}
	var wrong faults.List
	if msgs := validation.IsDNS1123Label(l.Clusters); len(msgs) > 0 {
		wrong.Add("Clusters %q is not the name of a namespace: %s", l.Clusters, msgs[0])
	}
	if provider := l.Provider(l.Clusters); provider != "" {
		wrong.Add("Clusters: namespace %s is that of provider %q, who would read there how the clusters are managed: choose another one", l.Clusters, provider)
	}
	return l, wrong.Of("namespaces.Layout")
}

// prefixed is Layout.Provider for namespaces with the ProviderPrefix.
func prefixed(namespace string) string {
	if provider, ok := strings.CutPrefix(namespace, ProviderPrefix); ok {
		return provider
	}
	return ""
}
