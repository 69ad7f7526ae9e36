// Package helm puts Helm charts onto clusters: as releases that `helm list` shows, `helm history` tells of and `helm rollback`
// can take back.
//
//	charts, err := helm.New(helm.Config{})
//	…
//	result, err := charts.Compute(ctx, cluster, live, service) // reads, renders, asks the API server what would change
//	if len(result.Changes) > 0 {
//		err = charts.CarryOut(ctx, cluster, service, result)
//	}
//
// Installations, upgrades and rollbacks are recorded as pending, in Secrets of the service's namespace as Helm writes them, and
// then carried out. Helm's own actions are not used: they block while a hook runs, and render a second time what was planned.
// Objects are applied by server-side apply with Helm's field manager, one after the other in Helm's order, and conflicting fields
// are taken over.
//
// # Hooks
//
// Hooks run at Helm's events, in the order of their weights, with Helm's deletion policies. Nothing waits for one inside of a call: CarryOut
// begins it, or deletes what is in its way, and returns. The revision stays pending, Compute tells that the service is Provisioning and what
// it waits for, and plans the rest when the hook has ended. How far the hooks are is on the revision's Secret: after a crash the hook that runs is found
// again and not begun anew, and its time-out counts from its begin. A service that changes meanwhile is upgraded when the hook has ended or its
// time is over; one that is taken away is uninstalled at once, as `helm uninstall` does with a pending release.
//
// An installation that fails, or is interrupted before its first hook, is followed by another one and not by an upgrade, until one succeeds: the
// hooks pre-install and post-install run again, and templates see .Release.IsInstall with the number of the new revision. A Job or a Pod of a
// hook is deleted before it runs again, whatever its deletion policy is.
//
// A hook needs a name: a plan with one that has only a generateName is refused, whichever its event is. A release that has one already goes without
// running it, and a note says so. A hook that Helm does not know is left out with a note. An object that becomes a hook is deleted by the upgrade,
// also after a pre-upgrade hook has put it there again, as by Helm. A hook that becomes an object becomes one of the release, which Helm refuses.
//
// # What was planned is what is applied
//
// A chart is rendered once, in Compute, and CarryOut records and applies that rendering: what a template makes up (a password,
// a time) is the same in the plan, and the objects and the record are Helm's byte for byte. Existing objects are compared by
// what the API server answers to a dry run, which also finds a field that can't change before anything is touched. Whether those
// would be created that are not there, and those of the hooks that are run next, is asked in the same way. The size of the
// revision is known then too: one that does not fit into a Secret, of 1 MiB, is a permanent error of the plan.
//
// Definitions in crds/ come first. Templates are rendered as if they were there: `.Capabilities.APIVersions` has what they serve, and `lookup`
// finds nothing of a kind that the cluster does not have yet. Objects that need a definition which changes are shown in the plan as
// carrier.AfterDefinition. They are tried out before the first hook, when the definitions of crds/ are there; a definition among the templates
// comes with the release, as with Helm.
//
// Of an object that a chart renders more than once, the last one counts, as with Helm, and a note says so.
//
// # What objects have to be
//
// An object with a label or an annotation that is no text, such as version: 1.10 without quotes, is refused before anything is done, wherever
// the chart has it: API servers refuse it too. Null is an empty text, as for API servers. Items of a list of one kind, such as a ConfigMapList,
// have that kind where they say none.
//
// The stringData of a Secret is applied as data: unlike Helm, a key that a chart withdraws from stringData goes, and the plan shows it. Of a
// Secret that Helm itself has applied last, it goes if it is withdrawn after the next upgrade.
//
// # Whose release it is
//
// The labels of carrier.LabelsOf are on the release and on all its objects, hooks too. A release without them is somebody's own:
// it is an error and stays as it is, unless helmOptions.replace is set and it is uninstalled, or the service has adopt. One of another keeper is an error
// that says whose it is. One of another ServiceSet of the same keeper, or of a former name, is taken over: its objects and
// revisions get the new marks, nothing is installed again, and no hook is run. A hook whose object is there
// already and is somebody else's is an error too: Helm would delete that object and make its own.
//
// Objects and revisions are written and deleted as they were seen right before, in Helm's own storage too. Helm's field manager is
// "helm" for everybody: that is its contract.
//
// # Removal
//
// Objects that an upgrade, a rollback or a removal would delete stay if they have the annotation helm.sh/resource-policy or
// [carrier.PruneAnnotation] that says so. A namespace stays with anything in it that is not of the service, and a
// definition with objects of its kind that are not of the service, where Helm would delete these with it: among templates, and left by hooks
// ([carrier.Bystanders] says what counts). The plan says beforehand what stays, and why. It keeps its marks, and is not deleted when the
// last other object is gone, unless the service is removed after that and its history still has the revision.
//
// As with Helm, an upgrade deletes what is not in the chart any more when all else is applied, and does not wait until that is
// healthy. Package manifest does wait.
//
// A removal deletes what hooks have left behind, unlike Helm, which leaves it: nothing of a service stays on its cluster but what asks for that.
// A hook that has to outlive its release needs the annotation helm.sh/resource-policy: keep. Definitions stay.
//
// # Adoption
//
// With adopt, a release that somebody else has made with Helm or its library (Flux, Sveltos) is taken over as it is: its objects, what its
// hooks have left and its revisions get the marks of the service, and their fields go from the field managers that have written them to
// Helm's. No revision is made, no hook is run, and what has drifted stays, and is told. Where the chart comes to something else than the release
// has, but for the labels of Flux, a note names it, and the release is upgraded then. Its latest revision has to be deployed.
//
// # Crashes
//
// A revision that this carrier left pending before it came to a hook, because the operator ended in its middle, is marked as failed and
// followed by another one. One that takes something back, by a rollback or an uninstallation, is gone on with from its beginning, also when it
// has failed, until the service changes. One that somebody else's helm has pending is waited for until the time-out. What earlier revisions that
// did not get to their end have left on the cluster, and is not in the chart any more, is deleted with the next one, or before Helm deletes the
// last revision that tells of it, because it is one too many for the history.
//
// # Jobs that vanish
//
// A Job with ttlSecondsAfterFinished that is not there any more is done, once that time is over: it is neither missing nor drift. An upgrade
// that has it in its chart runs it again, as Helm does.
//
// # Patches
//
// Patches of the service (package patching) change what its templates came to before anything is planned, hooks too, as a post-renderer does
// it for `helm upgrade`: `helm get manifest` shows them. A file with an object that is patched is written anew, the other documents of it
// stay byte for byte. Definitions in crds/ are not patched.
//
// # Options
//
//	wait               health counts: the service is Deployed when its objects are. Default: true. Nothing blocks.
//	waitForJobs        jobs have to complete too. Default: false; a job that fails counts in any case
//	timeout            of each hook, and until all objects have to be healthy. Default: Config.Timeout
//	atomic             a revision that fails, or is not healthy in time, is rolled back to the last one that was deployed,
//	                   or uninstalled if there is none, and not tried again before the service changes. So is one that failed
//	                   for a reason that may pass, when the next try can't be planned. Default: false
//	createNamespace    Default: true. The namespace stays when the service goes, unless the chart renders it: then it is an
//	                   object of the release
//	skipCRDs           Default: false. Definitions in crds/ are created if they are not there, by an upgrade too, updated by one if
//	                   they came with the same service, and never deleted: unlike Helm, which never updates them. A note
//	                   tells of one of somebody else that is another one. A dependency that is switched off brings none
//	disableHooks       Default: false
//	disableOpenAPIValidation  asks API servers not to be strict about fields. Default: false. A field that a kind does not have
//	                   stays an error: no API server takes it in a server-side apply
//	skipSchemaValidation      of the chart's values. Default: false. A schema may refer to itself only, by its own $id too: nothing is fetched
//	dependencyUpdate   has no effect: a chart has to contain what it depends on, and it is an error if it does not
//	replace            takes the name of somebody else's uninstalled release. Default: false
//	labels             of the release
//	description        of the release
//
// # What templates can do
//
// What their functions make has bounds: 16 MiB for a text, 64 MiB for a list or a map with all that is in it, which can't be a part of
// itself but by way of $, and 512 MiB for a rendering. Where $ is in a list or a map, it is printed as map[...]; toYaml and toJson of what leads to
// itself by it are empty, as Helm has them. What loops write is bounded by the deadline only. The documents that a chart renders, and those of its
// crds/, may have 64 MiB with the aliases of their YAML as what they stand for.
//
// Rendering has a deadline (Config.RenderTimeout). Go can't end a template that loops without calling a function: it is left alone, its chart
// is refused with a permanent error, and not rendered again before it ends. Config.Renderings bounds how many there can be, and one namespace
// of the management cluster has half of them at most. `lookup` reads from the cluster with the rights of its kubeconfig, or of the service
// account of the service; there are no lookups of names, no files and no environment.
//
// # Secrets
//
// Values from Secrets are in no change, note or error, neither in clear nor in base64. A revision has an annotation that says at which paths
// its values were secret, so that they stay hidden when the service does not take them from a Secret any more. Of
// a revision without it, such as one that somebody made by hand, what the service does not have any more is hidden. Helm's log goes nowhere.
package helm
