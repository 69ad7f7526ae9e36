// Package framework is the engine of an operator: it turns changes of objects into runs of resources.
//
// A [Resource] is one step of a reconciliation. Most are CRUD resources: they say what is (current state), what should
// be (desired state) and how the two differ (a [Patch] with a create, an update and a delete part), and the framework
// applies the patch. A [ResourceSet] lists the resources for one version of an object, a [ResourceRouter] picks the set,
// and a [Framework] does the rest for the objects of one source: watching, queueing, ordering, retrying, deleting safely,
// measuring.
//
//	pages, err := framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[*v1alpha1.Website, []*corev1.ConfigMap]{
//		Logger: logger, Ops: &pageOps{client: c},
//	})
//	websites, err := framework.New(framework.Config{Source: source, Logger: logger, ResourceSets: []framework.ResourceSetConfig{{
//		Handles:   framework.HandlesLabel("example.com/version", "v1"),
//		Resources: []framework.Resource{pages},
//	}}})
//	err = websites.Run(ctx)
//
// # Which way in is for me
//
//	you have                                 you use
//
//	objects of an API, a bucket or a list    New with Config.Source (package informer), and Run; package operator does both
//	a controller-runtime manager             New with Config.Source, and mgr.Add, which calls Start
//	an informer with channels                New with Config.Informer, and Run, or Boot
//	channels that you have got from one      New, Run, and ProcessEvents, which only queues the objects
//	event handlers of an informer            New, Run, and UpdateFunc and DeleteFunc, which only queue the object
//	a controller with a queue of its own     New with Config.Driven, Run, and ReconcileObject, which returns how it ended
//	a list of resources and no framework     ProcessUpdate and ProcessDelete, which run them at once
//
// What would change is told beforehand by Plan and PlanObject of a Framework, and by PlanUpdate and PlanDelete without one.
//
// The path of a key, in reading order: framework.go (from the sources to the workers), internal/queue,
// reconcile.go (which object), deletion.go (finalizers, and objects that are being deleted, or gone), resourceset.go
// (which resources), process.go (one run of them), crud.go and computation.go (the steps of a CRUD
// resource), gate.go (may it be done?), ending.go (when again). takeover.go and live.go say when the
// object itself is not to be trusted. All else is beside that path: plans, shadows, records,
// metrics, names (identify.go).
//
// # Promises
//
//   - The queue holds keys, not objects: any number of changes of one object while it is being reconciled are one more
//     reconciliation, of its newest state. One object is never reconciled twice at once, different ones are in parallel.
//   - Nothing is dropped. An object that fails is tried again with a backoff of its own for as long as it exists;
//     an error marked by [Permanent] waits for the next change instead, and a deletion that failed so is given up when
//     another object takes the name. A look that was asked for comes whatever happens before. Where an API server has asked to
//     be left alone for a while (Retry-After), an hour at most, it is not tried again before.
//     Conflicts are told from the fifth in a row on. An object that can't be created because its namespace is being deleted is
//     no error: it is tried again every 30 seconds.
//   - A panic in a resource is an error of that object, which tells its type and place and not its words: they may quote a Secret.
//     The library never ends the process. Only runtime.Goexit is not looked after: it ends one worker, and its object is not tried again
//     before its next change.
//   - Deletion happens. With a finalizer (the default), EnsureDeleted of all resources has succeeded before it is taken
//     off, across restarts. Without one, they are called with the last known state, for deletions seen while running.
//   - What a reconciliation has written is read from then on and no reason to reconcile its object again, see "Own writes" in package
//     informer; what somebody else changed always is. Watch.OwnWrites keeps own writes as a reason.
//   - Whoever takes objects over from another process, at the start or as one of several replicas, compares the source with one
//     list of what there is (informer.Comparer) before the first key: a key that differs waits for its event. Later on a source that
//     lags may have an update computed from an older state, but never a deletion.
//   - Nothing is deleted on the word of a source that lags. The object is read where it is kept (informer.LiveReader), once in each
//     reconciliation that deletes. If it has changed since, nothing of the patch is applied, and the object is reconciled when the
//     source has told of it. The deletion of an object takes nothing from another one that has its name by now: where another process
//     may have reconciled that, it is left alone, and the update of the new one clears up. [Confirm] does the same for what resources do
//     by other ways than patches.
//   - What a resource would change passes one gate before anything of it is done ([Policy]).
//   - Exactly one resource set handles an object. Without one the object is left alone, which an event on it and a metric
//     tell; several are an error.
//   - What is yours is yours alone: the finalizer, and the marks of what resources make, carry the names of operator and framework
//     (package identity). Two frameworks of one identity don't run on one source.
//   - Resources run in the order given, in deletions from the last to the first with ResourceSetConfig.DeleteBackwards; after an error only
//     those that tell of it ([Concluder]); within a CRUD resource create goes before update, and update before delete.
//   - Signals (package context/...) act within their resource or reconciliation and are looked at before every step.
//   - Every resource gets a copy of the object, which it may change.
//   - A change made now goes before the backlog of a start or a resync; one of seventeen turns is kept for the backlog.
//     Namespaces take turns in both, so that one with many objects does not hold up another.
//   - Run returns when everything it started has ended. What ignores the end of its context for Config.CancelTimeout is named by
//     an error for which errors.Is(err, ErrStillRunning) holds, and outlives Run.
//   - An [Observer] is told what every reconciliation did, and why. Without one nothing is recorded.
//   - Errors say which object, which resource and which step, and how to mend what an API server refused ([Advice]). What patches hold
//     is never logged.
//   - Values of Secrets that a reconciliation reads are scrubbed from its errors, events, records, plans and from what goes to
//     [Logger]; from records and plans also where an earlier resource shows what a later one reads. Package secretscontext says which
//     are known, how an author adds others, and what is not covered: values of less than eight bytes, forms of a value other than
//     itself and its base64, what is computed of a value, such as a hash in a ConfigMap, and what is logged past the context.
//
// # Plans
//
// What would change is computed apart from changing it, so that it can be told before:
//
//	p, err := websites.Plan(ctx, informer.Key{Namespace: "default", Name: "home"})
//	err = plan.WriteText(os.Stdout, []*plan.Plan{p}, plan.TextOptions{})
//	err = websites.ApplyPlan(ctx, p) // unless it is not the same any more
//
// Of plans it is promised:
//
//   - [Framework.Plan] changes nothing: by its type, the planning code can't reach a function that applies. A resource
//     that is not a CRUD resource can be planned if it is a [Planner].
//   - A plan is of the object as the source has it. It is not read where it is kept; before a plan is applied it is.
//   - [Framework.ApplyPlan] does what a plan says and nothing else. It compares the whole plan before it does anything: if it is not the
//     same, nothing is done. Each resource is compared once more when its turn comes, and what a CRUD resource applies is the patch that
//     was compared. One that differs by then ([ErrPlanChanged]) or cancels the reconciliation ([ErrUpdateUnfinished],
//     [ErrDeletionUnfinished]) ends it, and what earlier ones did stays: plan again, and apply the rest.
//   - With Config.PlanOnly, or for an object with the annotation [PlanAnnotation], the framework plans in place of
//     reconciling: an event, metrics and Config.PlanReporter tell what would change, each different plan once. Nothing
//     else is written; the object gets no finalizer and keeps those it has, also in its deletion.
//
// # Shadows
//
// A resource set that is marked as a shadow is tried and never run, see [Framework.Shadows]. For every object that the
// active set handles and the shadow's Handles names, both are planned a second after a reconciliation, when no object waits
// for one, and compared: what would the next version of the logic change beyond what this one does?
//
//	v2, err := framework.NewResourceSet(framework.ResourceSetConfig{
//		Name: "v2", Shadow: true, Handles: framework.HandlesLabel("example.com/version", "v1"), Resources: resourcesOfV2,
//	})
//	fmt.Println(websites.Shadows()[0]) // v2 would change 3 of 214 objects
//
// What goes wrong in a shadow, or takes too long, is said of the shadow, and concerns no object. Its InitCtx, the functions
// of its CRUD resources that compute, and the Plan of plain ones are called; like these of every set, they must not change
// anything. Requests that they send count against the same limits of the API server as all others. PlanShadows compares one
// object at once.
//
// # Metrics
//
// All names begin with operatorkit_framework_ and carry the label framework: info, events_total,
// reconciliation_duration_seconds, step_duration_seconds, step_errors_total, errors_total, conflicts_total,
// retries_total, panics_total, active_workers, queue_depth, queue_age_seconds, queue_wait_seconds, queue_retrying, queue_asked,
// failing_objects, failing_since_timestamp_seconds,
// last_reconciled_timestamp_seconds, last_success_timestamp_seconds, newest_creation_timestamp_seconds,
// oldest_deletion_timestamp_seconds, source_synced, source_staleness_seconds, source_objects, planned_objects, unmatched_objects,
// shadow_comparisons_total, shadow_duration_seconds, shadow_objects, shadow_queue_depth. No label
// holds the name of an object.
package framework
