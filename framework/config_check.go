package framework

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/faults"
)

// setDefaults sets the defaults. The error is a fault of Resources or ResourceSets.
func (c *Config) setDefaults() error {
	c.Name = c.name()
	c.Workers = cmp.Or(c.Workers, DefaultWorkers)
	c.ShutdownTimeout = cmp.Or(c.ShutdownTimeout, DefaultShutdownTimeout)
	c.CancelTimeout = cmp.Or(c.CancelTimeout, DefaultCancelTimeout)
	c.ShadowWorkers = cmp.Or(c.ShadowWorkers, defaultShadowWorkers)
	c.ShadowTimeout = cmp.Or(c.ShadowTimeout, defaultShadowTimeout)
	if c.BackOffFactory == nil {
		c.BackOffFactory = DefaultBackOffFactory()
	}
	c.DisableFinalizer = c.DisableFinalizer || c.Driven
	// Fields that exclude each other stay set: validate rejects them.
	switch {
	case c.ResourceRouter != nil || len(c.Resources) > 0 && len(c.ResourceSets) > 0:
		return nil
	case len(c.Resources) > 0:
		set, err := NewResourceSet(ResourceSetConfig{Handles: HandlesType[any], Resources: c.Resources})
		if err != nil {
			return err
		}
		c.ResourceRouter, c.Resources = &ResourceRouter{sets: []*ResourceSet{set}}, nil
	case len(c.ResourceSets) > 0:
		return c.route()
	}
	return nil
}

// route makes the router of ResourceSets.
func (c *Config) route() error {
	router := ResourceRouterConfig{Logger: c.Logger}
	var errs []error
	for i, config := range c.ResourceSets {
		if config.Logger == nil {
			config.Logger = c.Logger
		}
		set, err := NewResourceSet(config)
		if err != nil {
			errs = append(errs, fmt.Errorf("ResourceSets[%d]: %w", i, err))
			continue
		}
		router.ResourceSets = append(router.ResourceSets, set)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	var err error
	if c.ResourceRouter, err = NewResourceRouter(router); err != nil {
		return err
	}
	c.ResourceSets = nil
	return nil
}

// name returns the name of the framework. Its default depends on the reconciled objects. An
// Informer that is a Source becomes the Source.
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
	return identity.DefaultFramework
}

func (c *Config) validate() error {
	var wrong faults.List
	wrong.If(c.Logger == nil, "Logger must not be nil")
	wrong.If(c.ResourceRouter == nil, "ResourceRouter must not be nil, or ResourceSets or Resources not be empty")
	wrong.If(c.ResourceRouter != nil && len(c.Resources) > 0, "ResourceRouter and Resources must not both be set")
	wrong.If(c.ResourceRouter != nil && len(c.ResourceSets) > 0, "ResourceRouter and ResourceSets must not both be set")
	wrong.If(len(c.ResourceSets) > 0 && len(c.Resources) > 0, "ResourceSets and Resources must not both be set")
	wrong.If(c.CRD != nil && c.CRDClient == nil, "CRDClient must not be nil when CRD is set")
	wrong.If(c.CRD == nil && c.CRDClient != nil, "CRD must not be nil when CRDClient is set: it would ensure nothing")
	wrong.If(c.Source != nil && c.Informer != nil, "Source and Informer must not both be set")
	wrong.If(c.Driven && (c.Informer != nil || len(c.Watches) > 0),
		"Informer and Watches must not be set when Driven is: nothing would be reconciled because of them")
	wrong.If(c.Workers < 0, "Workers must not be negative, is %d", c.Workers)
	wrong.If(c.CancelTimeout < 0, "CancelTimeout must not be negative, is %s", c.CancelTimeout)
	wrong.If(c.ShadowWorkers < 0, "ShadowWorkers must not be negative, is %d", c.ShadowWorkers)
	wrong.If(c.ShadowTimeout < 0, "ShadowTimeout must not be negative, is %s", c.ShadowTimeout)
	for i, w := range c.Watches {
		wrong.If(w.Source == nil, "Watches[%d].Source must not be nil", i)
		wrong.If(w.Map == nil, "Watches[%d].Map must not be nil", i)
	}
	if msgs := faultsOfFinalizer(c.Finalizer); c.Finalizer != "" && len(msgs) > 0 {
		wrong.Add("Finalizer %q must look like example.com/name %v", c.Finalizer, msgs)
	}
	for i, finalizer := range c.FormerFinalizers {
		wrong.If(finalizer == c.Finalizer || finalizer == "",
			"FormerFinalizers[%d] must be another one than Finalizer", i)
	}
	for i, name := range c.FormerNames {
		wrong.If(name == c.Name || name == "", "FormerNames[%d] must be another name than %q", i, c.Name)
	}
	for i, name := range c.FormerOperators {
		wrong.If(name == c.Operator || name == "" || c.Operator == "",
			"FormerOperators[%d] must be another name than Operator, which must be set then", i)
	}
	validateGuards(c.Guards, &wrong)
	return wrong.Of("Config")
}

// faultsOfFinalizer returns the faults of a finalizer's name.
func faultsOfFinalizer(finalizer string) []string {
	if !strings.Contains(finalizer, "/") {
		return []string{"it has no domain"}
	}
	return validation.IsQualifiedName(finalizer)
}
