// Package serviceset works out which services a cluster gets now, and in which version: the logic between what people
// desire (see package v1alpha1) and the ServiceSet that a state manager carries out.
//
// An operator asks what has to be done with the ServiceSet of a cluster, and does it:
//
//	req := serviceset.OperationRequisites{ObjectKey: serviceset.ObjectKey(system, cd, nil), CD: cd, SystemNamespace: system}
//	operation, err := serviceset.ComputeOperation(ctx, c, req)
//	if err != nil {
//		return err // names every dependency that is absent or goes in circles
//	}
//	for _, d := range operation.Resolution.Decisions {
//		fmt.Println(&d) // platform/cert-manager 1.14.2 → 1.15.0 (step 1 of 3 to 1.17.1)
//	}
//	return serviceset.NewProcessor(c).CreateOrUpdateServiceSet(ctx, operation.Operation, operation.ServiceSet)
//
// It asks again after each change of a service, of a template, of a chain and of a state. [ComputeClusterOperations] answers for
// all owners of a cluster at once, those included that leave. [Resolve] is the logic without the reading, for those who have
// everything at hand.
//
// # Rules
//
//   - Order. A service is touched only when all that it depends on, directly or transitively, is Deployed, in the version of
//     its ServiceSet, and that is the desired one, with the desired values. Else it is locked: its entry stays as it is, values
//     included. A state counts when it is about the entry as it is: see ServiceWithValues.Generation.
//   - Install. A service that is not there is installed in the desired version.
//   - In flight. While the entry in the ServiceSet is not Deployed as it is, its version is not changed; new values go through.
//   - Steps. A service with a ServiceTemplateChain takes one edge of the chain at a time: to a template from which the desired
//     one can be reached; among those to the smallest version that is not below the present one, then to the one with the
//     fewest steps that remain, then to the first by name. Downgrades are the same along edges that lead down. Where versions
//     are absent or not semantic, edges alone decide. Without a chain the desired template is taken at once.
//   - No way. The entry keeps its version, new values go through, and the decision says what is out of reach and why.
//   - Failures. A service that failed takes new values, may go back to what it last had Deployed, and goes on when something
//     else is desired than when the step was taken. A step that failed is not skipped.
//   - Removal. A service that is not desired any more goes after all that depends on it, in whichever ServiceSet that is.
//   - MultiClusterServices that depend on others. On a cluster, the services of one are touched only when all services that those list
//     there, directly or transitively, are ready, as above and whoever owns them. Disabled ones do not count, nor does one that does not
//     select the cluster. A service that both list is one of the earlier ones'. They leave in the reverse order: what an owner has that
//     is being deleted, does not select the cluster any more or lists nothing stays as long as those that depend on it have
//     services on the cluster. A single service that it takes out of its list does not wait for them. To depend on one that does
//     not exist or is being deleted, or in a circle, is a *DependencyError for all above: their sets stay as they are.
//   - Disabled. A service is kept as it is.
//   - Several owners. The one with the highest priority gets a service, then the oldest, then by name. For the others it is
//     overridden, which is normal.
//   - Handover. The new owner's set gets a service as it is in the old one's, even if the new owner waits, has it disabled or can't
//     have its way. Then the old one's loses it, and only after that it changes. So it is never in no set, and two sets never
//     ask for different versions. The new owner waits for the old one to let go: as long as that has a fault, nothing changes, and the
//     decision says so.
//   - Withdrawal. An owner that lists nothing, does not select the cluster any more, is being deleted or is gone gives up what it
//     has by the same two rules: what another owner lists is handed over, the rest is removed in order. Then its set is empty,
//     and is deleted. This needs neither its provider nor its templates. A service that its new owner can't take into its set,
//     because of a *GraphError, a *DependencyError or for want of a provider, stays with the old one until that is mended. When a
//     cluster is being deleted, all its sets are deleted at once, but those of MultiClusterServices after those that depend on them.
//   - Faults. What is wrong with one service blocks it and those that depend on it; the rest goes on. Only dependencies that are absent
//     or go in circles stop everything of an owner.
//
// # Promises
//
//   - The functions change none of their arguments (except [ResolveServiceVersions], which is for that) and write nothing.
//     They are safe for concurrent use.
//   - The same input has the same result. Lists come by namespace and name; no state changes their order.
//   - There is nothing to do when nothing changes in meaning, whatever the order of lists and the form of JSON.
//   - Following the answers ends at what is desired wherever there is a way, and never goes in circles.
package serviceset
