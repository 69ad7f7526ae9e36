package framework

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/operatorkit/operatorkit/informer"
)

// setDefaults fills in what is not set. The error is a fault of Resources.
func (c *Config) setDefaults() error {
	c.Name = c.name()
	c.Workers = cmp.Or(c.Workers, DefaultWorkers)
	c.ShutdownTimeout = cmp.Or(c.ShutdownTimeout, DefaultShutdownTimeout)
	c.CancelTimeout = cmp.Or(c.CancelTimeout, DefaultCancelTimeout)
	c.ShadowWorkers = cmp.Or(c.ShadowWorkers, DefaultShadowWorkers)
	c.ShadowTimeout = cmp.Or(c.ShadowTimeout, DefaultShadowTimeout)
	c.ShadowQueue = cmp.Or(c.ShadowQueue, DefaultShadowQueue)
	if c.BackOffFactory == nil {
		c.BackOffFactory = DefaultBackOffFactory()
	}
	c.DisableFinalizer = c.DisableFinalizer || c.Driven
	if c.ResourceRouter != nil || len(c.Resources) == 0 {
		return nil
	}
	set, err := NewResourceSet(ResourceSetConfig{Handles: HandlesType[any], Resources: c.Resources})
	if err != nil {
		return err
	}
	c.ResourceRouter = &ResourceRouter{sets: []*ResourceSet{set}}
	c.Resources = nil
	return nil
}

// name is the name of the framework, by default of what it reconciles. An Informer that is a Source becomes that.
func (c *Config) name() string {
	if source, ok := c.Informer.(informer.Source); ok && c.Source == nil {
		c.Source, c.Informer = source, nil
	}
	switch {
	case c.Name != "":
		return c.Name
	case c.CRD != nil:
		return c.CRD.Name
	case c.Source != nil:
		return c.Source.Name()
	}
	return DefaultName
}

func (c *Config) validate() error {
	var faults []string
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if c.Logger == nil {
		fault("Logger must not be nil")
	}
	if c.ResourceRouter == nil {
		fault("ResourceRouter must not be nil, or Resources not be empty")
	}
	if c.ResourceRouter != nil && len(c.Resources) > 0 {
		fault("ResourceRouter and Resources must not both be set")
	}
	if c.CRD != nil && c.CRDClient == nil {
		fault("CRDClient must not be nil when CRD is set")
	}
	if c.Source != nil && c.Informer != nil {
		fault("Source and Informer must not both be set")
	}
	if c.Driven && (c.Informer != nil || len(c.Watches) > 0) {
		fault("Informer and Watches must not be set when Driven is: nothing would be reconciled because of them")
	}
	if c.Workers < 0 {
		fault("Workers must not be negative, is %d", c.Workers)
	}
	if c.CancelTimeout < 0 {
		fault("CancelTimeout must not be negative, is %s", c.CancelTimeout)
	}
	if c.ShadowWorkers < 0 {
		fault("ShadowWorkers must not be negative, is %d", c.ShadowWorkers)
	}
	if c.ShadowTimeout < 0 {
		fault("ShadowTimeout must not be negative, is %s", c.ShadowTimeout)
	}
	if c.ShadowQueue < 0 {
		fault("ShadowQueue must not be negative, is %d", c.ShadowQueue)
	}
	for i, w := range c.Watches {
		if w.Source == nil {
			fault("Watches[%d].Source must not be nil", i)
		}
		if w.Map == nil {
			fault("Watches[%d].Map must not be nil", i)
		}
	}
	if msgs := faultsOfFinalizer(c.Finalizer); c.Finalizer != "" && len(msgs) > 0 {
		fault("Finalizer %q must look like example.com/name %v", c.Finalizer, msgs)
	}
	for i, finalizer := range c.FormerFinalizers {
		if finalizer == c.Finalizer || finalizer == "" {
			fault("FormerFinalizers[%d] must be another one than Finalizer", i)
		}
	}
	for i, name := range c.FormerNames {
		if name == c.Name || name == "" {
			fault("FormerNames[%d] must be another name than %q", i, c.Name)
		}
	}
	for i, name := range c.FormerOperators {
		if name == c.Operator || name == "" || c.Operator == "" {
			fault("FormerOperators[%d] must be another name than Operator, which must be set then", i)
		}
	}
	return invalidConfig("Config", faults)
}

// faultsOfFinalizer says what is wrong with a finalizer.
func faultsOfFinalizer(finalizer string) []string {
	if !strings.Contains(finalizer, "/") {
		return []string{"it has no domain"}
	}
	return validation.IsQualifiedName(finalizer)
}
