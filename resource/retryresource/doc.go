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
//   - Short waits are waited in the step, a second in all ([Config].MaxWait). Before a longer one the reconciliation ends: its worker is
//     free, and after the wait the framework reconciles the object again, from its first resource on. The step then goes on with the
//     tries that its backoff has left. Until they are used up no failure is told, but by the warnings in the log and the record of
//     the reconciliation. A failure of another step in between makes it begin anew.
//   - Not retried are: errors marked by framework.Permanent, which stay marked; panics; errors of a step that has
//     cancelled its resource or its reconciliation by signal; anything after the context has ended.
//   - Without further configuration a step is tried for ten seconds at most, see [DefaultBackOff].
//   - The resources given to Wrap are not changed. CRUD resources are retried step by step, plain ones as a whole, and
//     both can be wrapped by other packages before and after.
package retryresource
