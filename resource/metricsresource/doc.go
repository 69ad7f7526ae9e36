// Package metricsresource measures the steps of resources.
//
//	resources, err = metricsresource.Wrap(resources, metricsresource.Config{
//		Name:       "websites",
//		Registerer: registry,
//	})
//
// It gives two metrics, with the labels set, resource and step:
//
//	operatorkit_resource_step_duration_seconds   histogram: how long steps took, failed ones included
//	operatorkit_resource_step_errors_total       counter: steps that failed or panicked
//
// A framework measures the steps of its resources by itself (operatorkit_framework_step_duration_seconds and step_errors_total). This
// is for lists of resources that are run without one, and for those who want a metric by the name of a list, or other buckets.
//
// Every attempt counts when the measured resources are wrapped by retryresource afterwards; only the outcome of all
// attempts, when they were before.
//
// # Promises
//
//   - Wrapping several lists with one registerer, also with the same name, works: they share the collectors.
//   - The number of series depends on the resources and the nine steps only, never on the objects.
//   - The resources given to Wrap are not changed, errors are passed on as they are.
package metricsresource
