package servicesets

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/operatorkit/operatorkit/framework"
)

// DefaultSystemNamespace is where the ServiceSets of the management cluster are.
const DefaultSystemNamespace = "operatorkit-system"

// Config configures the frameworks.
type Config struct {
	// SystemNamespace is where the ServiceSets of the management cluster are, with their templates and chains. It must exist
	// before a MultiClusterService has selfManagement, and must not change as long as there are such ServiceSets. Default:
	// DefaultSystemNamespace.
	SystemNamespace string
	// MultiClusterServices limits the operator to MultiClusterServices with these labels, for several operators that share a
	// control plane, each with namespaces of its own. The labels must not change while a MultiClusterService has
	// ServiceSets. Default: all.
	MultiClusterServices labels.Selector
	// Sources are shared with the operator of package statemanagers. Default: its own, made by NewSources.
	Sources *Sources
}

// complete fills in the defaults. The error is one for which framework.IsInvalidConfig holds.
func (c *Config) complete() error {
	if c.SystemNamespace == "" {
		c.SystemNamespace = DefaultSystemNamespace
	}
	if c.MultiClusterServices == nil {
		c.MultiClusterServices = labels.Everything()
	}
	if msgs := validation.IsDNS1123Label(c.SystemNamespace); len(msgs) > 0 {
		return fmt.Errorf("%w: servicesets.Config: SystemNamespace %q is not the name of a namespace: %s",
			framework.ErrInvalidConfig, c.SystemNamespace, msgs[0])
	}
	return nil
}

// withNamespace adds a namespace to a list that limits something. An empty list is no limit.
func withNamespace(limits []string, namespace string) []string {
	if len(limits) == 0 || slices.Contains(limits, namespace) {
		return limits
	}
	return append(slices.Clone(limits), namespace)
}
