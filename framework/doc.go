// Package framework is the engine of an operator: it turns changes of objects into runs of
// resources.
//
// A [Resource] is one step of a reconciliation. Most are CRUD resources: they return the current
// state, the desired state and the difference of the two (a [Patch] with a create, an update and a
// delete part), and the framework applies the patch. A [ResourceSet] lists the resources for one
// version of an object, and a [ResourceRouter] picks the set. A [Framework] does the rest for the
// objects of one source: watching, queueing, ordering, retrying, deleting safely, measuring.
//
//	pages, err := framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[
//		*v1alpha1.Website, []*corev1.ConfigMap,
//	]{Logger: logger, Ops: &pageOps{client: c}})
//	websites, err := framework.New(framework.Config{
//		Source: source, Logger: logger, ResourceSets: []framework.ResourceSetConfig{{
//			Handles:   framework.HandlesLabel("example.com/version", "v1"),
//			Resources: []framework.Resource{pages},
//		}},
//	})
//	err = websites.Run(ctx)
//
// # Entry points
//
//	you have                               you use
//
//	an API, a bucket or a list of objects  New with Config.Source (package informer), and Run;
//	                                       package operator does both
//	a controller-runtime manager           New with Config.Source, and mgr.Add, which calls Start
//	an informer with channels              New with Config.Informer, and Run, or Boot
//	channels of an informer                New, Run, and ProcessEvents, which only queues the
//	                                       objects
//	event handlers of an informer          New, Run, and UpdateFunc and DeleteFunc, which only queue
//	                                       the object
//	a controller with a queue of its own   New with Config.Driven, Run, and ReconcileObject, which
//	                                       returns the outcome
//	a list of resources, no framework      ProcessUpdate and ProcessDelete, which run them at once
//
// Plan and PlanObject of a Framework return what would change, without a change. Without a
// framework, PlanUpdate and PlanDelete do.
//
// # Reading the code
//
// The path of a key, from an event to the next attempt, in reading order:
//
//	framework.go       events of the sources, and the workers
//	internal/queue     waiting keys, and retries (framework/internal/queue)
//	reconcile.go       which object is reconciled, and how
//	deletion.go        finalizers, and objects that are being deleted, or gone
//	resourceset.go     which resources run
//	process.go         one run of them
//	crud.go            the steps of a CRUD resource, with computation.go
//	gate.go            whether changes are applied
//	ending.go          when the object is reconciled again
//
// All other files are beside that path. takeover.go and live.go decide whether the state of the
// object is new enough. triggers.go says why a key waits. compat.go has the drop-ins, which only
// feed the queue, and driven.go is for callers with their own queue. The path reports what happens
// to the observers (observers.go): metrics.go, tracing.go, activity.go (what the workers do),
// reporter.go (log messages and events about errors), unmatched.go, shadow_compare.go and
// recording.go. No observer decides anything in a reconciliation, except
// fights_policy.go, which is also a policy of the gate; fights.go has what it reports.
//
//	where is                               see
//
//	a conflict handled                     conclude → decide → isConflict (by consistsOf in
//	                                       errortree.go), and conclude → schedule (backoff), in
//	                                       ending.go. failures.note in failures.go remembers how
//	                                       many in a row; failureReports.ended in reporter.go logs
//	                                       from the fifth on (lasting in ending.go). asConflict in
//	                                       driven.go makes one for callers with their own queue
//	the finalizer added                    update in reconcile.go → ensureFinalizer in deletion.go
//	the finalizer removed                  finishDeletion (processed), reconcileMissing (not
//	                                       selected), and update in reconcile.go (just added, but
//	                                       the newer object has no resource set) →
//	                                       removeOwnFinalizers → removeFinalizers in deletion.go;
//	                                       ensureFinalizer (former names) → removeFinalizers
//	an own write recognised                handlePrimary and handleWatched → enqueue in framework.go
//	                                       → Event.Wake → result.caused in informer/ownwrites.go,
//	                                       at once or, if the write is not answered yet, from
//	                                       Write.end. Author.KeepOwn there makes it count
//	a key requeued                         conclude → schedule in ending.go
//	why a key is queued                    byRequest in triggers.go, from schedule, Enqueue and
//	                                       EnqueueAfter (runResource in process.go notes which
//	                                       resource asked); byEvent, from enqueue; byTakeover
//	why a key was queued, shown            recorder.ended in recording.go puts the triggers into a
//	                                       Record. The page (reason in operator/inspector/text.go),
//	                                       explain and spans (Trigger.String) show them
//	a change held                          ensure in crud.go, and in process.go for resources
//	                                       without patches → gate in gate.go → the policies that
//	                                       hold: signalPolicy (bySignals), requiredPolicy
//	                                       (Framework.Require), fights (fights_policy.go),
//	                                       guardPolicy (guardpolicy.go) and livePolicy
//	a change denied                        the same gate → approval in planapply.go (the plan that
//	                                       is applied differs), guardPolicy, and the fence of
//	                                       package operator (the lease is lost)
//	a change dropped                       proceed in process.go (a cancelled resource); after a
//	                                       Partial error patch in computation.go and apply in
//	                                       crud.go (deletions); reconcileSubject in reconcile.go
//	                                       (objects that are only planned)
//	a live read before a deletion          livePolicy in gate.go → confirm in live.go
//
// # Promises
//
//   - The queue holds keys, not objects. All changes of an object while it is being reconciled
//     cause one more reconciliation, of its newest state. One object is never reconciled twice at
//     once; different objects are reconciled in parallel.
//   - Nothing is dropped. An object that fails is retried with its own backoff while it exists. An
//     error marked by [Permanent] waits for the next change instead; a deletion that failed with
//     one is given up when another object takes the name. A requested requeue happens whatever else
//     happens before it. If an API server has asked for a pause (Retry-After), the object is not
//     retried before the pause ends, an hour at most. Only the fifth and later consecutive
//     conflicts are logged. An object that can't be created because its namespace is being deleted
//     causes no error: it is retried every 30 seconds.
//   - A panic in a resource is an error of the object. The error reports the type and place of the
//     panic but not its text, which may quote a Secret. The library never ends the process. Only
//     runtime.Goexit is not handled: it ends one worker, and the object that the worker reconciled
//     is not retried before its next change.
//   - Deletion happens. With a finalizer (the default), EnsureDeleted of all resources has
//     succeeded before the finalizer is removed, across restarts. Without one, EnsureDeleted is
//     called with the last known state, for deletions seen while running.
//   - After a reconciliation has written something, reads return it, and the write does not cause
//     another reconciliation of its object (see "Own writes" in package informer). Changes by
//     others always cause one. Watch.OwnWrites makes own writes cause one too.
//   - When a process adopts objects from another one, at its start or as one of several replicas,
//     it compares the source with one list of the existing objects (informer.Comparer) before the
//     first key. A key that differs waits for its event. Later, a source that lags may cause an
//     update that is computed from an older state, but never a deletion.
//   - Nothing is deleted because of a source that lags. Each reconciliation that deletes does one
//     live read of the object (informer.LiveReader). If the object changed, nothing of the patch is
//     applied, and the object is reconciled when the source has delivered the change. The deletion
//     of an object takes nothing from a newer object of the same name: if another process may have
//     reconciled the newer one, the deletion is not processed, and the update of the newer object
//     cleans up. [Confirm] does the same for resources that delete in other ways than by patches.
//   - The changes of a resource pass one gate before any of them is applied ([Policy]).
//   - A change that was applied five times within ten minutes, and found undone each time, is
//     reported and held for a while ([Fight]). It is tried again after pauses of a minute to an
//     hour, and never given up.
//   - A [Guard] is asked about the very change that is applied. One that can't be evaluated denies.
//   - Exactly one resource set handles an object. An object without one is ignored, which an event
//     on it and a metric report. Several are an error.
//   - Marks are exclusive: the finalizer, and the marks on what resources make, carry the names of
//     operator and framework (package identity). Two frameworks of one identity don't run on one
//     source.
//   - Resources run in the given order; with ResourceSetConfig.DeleteBackwards deletions run them
//     from the last to the first. After an error only Concluders run ([Concluder]). Within a CRUD
//     resource the order is create, update, delete.
//   - Signals (package context/...) act within their resource or reconciliation. They are checked
//     before every step.
//   - Every resource gets a copy of the object, which it may change.
//   - A change made now has priority over the backlog of a start or a resync; one of seventeen
//     turns is kept for the backlog. Namespaces take turns in both, so that many objects in one
//     cannot delay another.
//   - Run returns when everything it started has ended. If something ignores the end of its context
//     for Config.CancelTimeout, it outlives Run. Then Run returns an error that names it, for which
//     errors.Is(err, ErrStillRunning) holds.
//   - An [Observer] receives a record of every reconciliation and of its cause. Without an Observer
//     nothing is recorded.
//   - Errors name the object, the resource and the step, and suggest a fix when an API server
//     refused a request. The content of patches is never logged.
//   - Values of Secrets that a reconciliation reads are scrubbed from its errors, events, records
//     and plans and from messages to [Logger]; from records and plans also if an earlier resource
//     shows a value that a later one reads. Package secretscontext documents which values are known
//     and how an author adds others. Not covered are values of less than eight bytes, forms of a
//     value other than itself and its base64, values computed from it, such as a hash in a
//     ConfigMap, and messages that are logged without the context.
//
// # Plans
//
// The changes are computed separately from their application. So a plan can show them beforehand:
//
//	p, err := websites.Plan(ctx, informer.Key{Namespace: "default", Name: "home"})
//	err = plan.WriteText(os.Stdout, []*plan.Plan{p}, plan.TextOptions{})
//	err = websites.ApplyPlan(ctx, p) // fails if the plan would differ by now
//
// The promises of plans:
//
//   - [Framework.Plan] changes nothing: by its type, the planning code can't reach an Apply
//     function. A resource that is not a CRUD resource can be planned if it is a [Planner].
//   - A plan uses the object as the source holds it. A live read only happens before a plan is
//     applied.
//   - [Framework.ApplyPlan] applies exactly the plan. It first compares the whole plan: if it
//     differs, nothing is done. Each resource is compared again at its turn, and a CRUD resource
//     applies exactly the compared patch. A resource that differs by then ([ErrPlanChanged]) or
//     cancels the reconciliation ([ErrUpdateUnfinished], [ErrDeletionUnfinished]) ends it. The
//     changes of earlier resources stay: plan again, and apply the rest.
//   - With Config.PlanOnly, or for an object with the annotation [PlanAnnotation], the framework
//     plans instead of reconciling. An event, metrics and Config.PlanReporter report what would
//     change, each different plan once. Nothing else is written: the object gets no finalizer and
//     keeps its existing ones, also in its deletion.
//
// # Shadows
//
// A resource set that is marked as a shadow is compared and never run, see [Framework.Shadows]. It
// is compared for every object that the active set handles and that the shadow's Handles selects.
// Both sets are planned a second after a reconciliation, when no object waits for one. The
// comparison answers: what would the next version of the logic change beyond the changes of this
// one?
//
//	v2, err := framework.NewResourceSet(framework.ResourceSetConfig{
//		Name: "v2", Shadow: true, Handles: framework.HandlesLabel("example.com/version", "v1"),
//		Resources: resourcesOfV2,
//	})
//	fmt.Println(websites.Shadows()[0]) // v2 would change 3 of 214 objects
//
// A failure or a timeout in a shadow is reported for the shadow and does not affect the object. The
// framework calls the shadow's InitCtx, the computing functions of its CRUD resources, and the Plan
// of plain ones. As in every set, these must not change anything. Their requests count against the
// same limits of the API server as all others. PlanShadows compares one object at once.
//
// # Metrics
//
// All names have the prefix operatorkit_framework_ and carry the label framework: info,
// events_total, reconciliation_duration_seconds, step_duration_seconds, step_errors_total,
// errors_total, conflicts_total, retries_total, panics_total, active_workers, queue_depth,
// queue_age_seconds, queue_wait_seconds, queue_retrying, queue_asked, failing_objects,
// failing_since_timestamp_seconds, last_reconciled_timestamp_seconds,
// last_success_timestamp_seconds, newest_creation_timestamp_seconds,
// oldest_deletion_timestamp_seconds, source_synced, source_staleness_seconds, source_objects,
// planned_objects, unmatched_objects, fights, shadow_comparisons_total, shadow_duration_seconds,
// shadow_objects, shadow_queue_depth. No label holds the name of an object.
package framework
