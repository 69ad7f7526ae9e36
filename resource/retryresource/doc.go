// Package retryresource retries the steps of resources.
//
// A framework tries a failed reconciliation again as a whole, and later. That is right for most errors; where single
// requests fail now and then, repeating only the step that failed is faster and does less:
//
//	resources, err = retryresource.Wrap(resources, retryresource.Config{Logger: logger})
//	if err != nil {
//		return err
//	}
//	set, err := framework.NewResourceSet(framework.ResourceSetConfig{Resources: resources, ...})
//
// # Promises
//
//   - Every call of a step has a backoff of its own, so keys and steps don't slow each other down.
//   - Waiting ends with the context.
//   - Not retried are: errors marked by framework.Permanent, which stay marked; panics; errors of a step that has
//     cancelled its resource or its reconciliation by signal; anything after the context has ended.
//   - Without further configuration a step is tried for ten seconds at most, see [DefaultBackOff].
//   - The resources given to Wrap are not changed. CRUD resources are retried step by step, plain ones as a whole, and
//     both can be wrapped by other packages before and after.
package retryresource
