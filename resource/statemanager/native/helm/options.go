package helm

import (
	"maps"
	"time"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// options are the ServiceHelmOptions of a service with their defaults.
type options struct {
	wait, waitForJobs, atomic, createNamespace, skipCRDs, disableHooks, ignoreUnknownFields, skipSchema, replace bool

	timeout     time.Duration
	labels      map[string]string
	description string
}

func (c *Carrier) optionsOf(service *carrier.Service) options {
	given := v1alpha1.ServiceHelmOptions{}
	if service.Entry != nil && service.Entry.HelmOptions != nil {
		given = *service.Entry.HelmOptions
	}
	o := options{
		wait: or(given.Wait, true), waitForJobs: or(given.WaitForJobs, false), atomic: or(given.Atomic, false),
		createNamespace: or(given.CreateNamespace, true), skipCRDs: or(given.SkipCRDs, false),
		disableHooks: or(given.DisableHooks, false) || service.Unknown, ignoreUnknownFields: or(given.DisableOpenAPIValidation, false),
		skipSchema: or(given.SkipSchemaValidation, false), replace: or(given.Replace, false),
		timeout: c.config.Timeout, description: given.Description,
	}
	if given.Timeout != nil && given.Timeout.Duration > 0 {
		o.timeout = given.Timeout.Duration
	}
	o.labels = maps.Clone(given.Labels)
	if o.labels == nil {
		o.labels = map[string]string{}
	}
	for _, name := range systemLabels {
		delete(o.labels, name)
	}
	maps.Copy(o.labels, carrier.LabelsOf(service))
	return o
}

// rememberFrom takes what matters to an uninstallation from the revision: when a service goes, its entry is gone already.
func (o *options) rememberFrom(r *record) {
	o.disableHooks = o.disableHooks || r.annotations[hooksAnnotation] == "disabled"
	if timeout, err := time.ParseDuration(r.annotations[timeoutAnnotation]); err == nil && timeout > 0 {
		o.timeout = timeout
	}
}

func or(value *bool, fallback bool) bool {
	if value == nil {
		return fallback
	}
	return *value
}
