// Package statusresource is a ready-made resource: the status of the primary object.
//
//	status, err := statusresource.New(statusresource.Config[*v1alpha1.Website]{
//		Client: d.Client, Logger: d.Logger,
//		Set: func(ctx context.Context, site *v1alpha1.Website, report *statusresource.Report) error {
//			site.Status.Page = site.Name + "-page"
//			if !served(site) {
//				report.Reconciling("Starting", "no web server runs yet")
//			}
//			return nil
//		},
//	})
//	set, err := framework.NewResourceSet(framework.ResourceSetConfig{Resources: []framework.Resource{objects, status}, …})
//
// It is the last resource of its set, and runs also when an earlier one failed (framework.Concluder), so that the status tells how the
// reconciliation went. The primary is a custom resource, typed or unstructured, whose definition has the status subresource,
// status.conditions and status.observedGeneration:
//
//	type WebsiteStatus struct {
//		// +optional
//		ObservedGeneration int64 `json:"observedGeneration,omitempty"`
//		// +optional
//		// +listType=map
//		// +listMapKey=type
//		Conditions []metav1.Condition `json:"conditions,omitempty"`
//	}
//
// # Conditions
//
// They are those of kstatus, so that "kubectl wait --for=condition=Ready", Argo CD and Flux understand them:
//
//	outcome                                  Ready    Reconciling    Stalled    reason
//
//	success                                  True     -              -          Reconciled
//	success, and Set called Reconciling      False    True           -          that of Set
//	success, and Set called Stalled          False    -              True       that of Set
//	an error that is tried again             False    True           -          Retrying
//	a permanent error                        False    -              True       Failed
//	a deletion that waits                    False    True           -          Deleting
//	changes that a policy holds              False    True           -          Held
//
// A condition without an entry is not there, which stands for False. status.observedGeneration, and that of each condition, is the
// generation that was reconciled. A conflict is no news: the reconciliation is tried again after its backoff, and what comes of that is told.
// From the fifth in a row on conflicts are told here, in the log, and by an event. A cancelled reconciliation, one that fails before its first
// resource, and the end of a deletion are not told either.
//
// # Promises
//
//   - Nothing is written when nothing changes. Another text of an error, with the same outcome of the same generation, is written
//     at most once in [MessagePeriod] for each object, and in [NumberPeriod] when only numbers in it are others.
//   - Only fields that change are written, by a merge patch of the status subresource with UID and resource version. When somebody
//     else has changed the object meanwhile, but not its generation, Set is asked again about what it is then.
//   - Conditions of other types stay as they are. Ready, Reconciling and Stalled belong to the operator, framework and resource that
//     wrote them first, as the API server notes in metadata.managedFields: another one is refused with a [RefusedError], and sets
//     Config.Prefix. For this the list has to be one by type, as above.
//   - Times of transitions are those of the write: they are in no plan, so that saved plans hold. The same goes for
//     other fields whose names end with TransitionTime, at any depth, which Set sets when something passes into another state.
//   - An answer 404 counts when the API server says that the very object is gone, and is an error otherwise (package notfound): a proxy
//     answers 404 too.
//   - A plan shows the status after a success, and the conditions in words.
//   - The messages of conditions, and all other fields whose names end with "message", are written without the secret values that
//     are known in the reconciliation (package secretscontext). Author's fields of other names are his: they may have been made to be read.
//
// Merge patches, and not server-side apply: they work for lists of conditions of any kind of definition, and for a status that an
// earlier version has written otherwise, without taking anything over.
//
// The operator needs the verb get for its primaries, and patch for their status. A resource is safe for concurrent use for different
// primaries.
package statusresource
