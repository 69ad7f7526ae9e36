// Package native is the state manager of this module: it puts the services of ServiceSets onto their clusters itself. Charts are
// releases of Helm, kustomizations and manifests are applied by the server with an inventory.
//
//	manager, err := native.New(native.Config{
//		Clusters: clusters, Management: client, Helm: charts, Manifests: manifests, Fetcher: fetcher, Logger: logger,
//	})
//	clusters, err := target.New(target.Config{Owners: native.Owners(serviceSets), …})
//
// What is put onto clusters is the business of carriers (package carrier). This package decides what a service is made of, when it
// may be put there or taken away, and how it is.
//
// # What a service is made of
//
// All that a service names is in the namespace of its ServiceSet on the management cluster: the template, the ConfigMaps and Secrets
// with values, and those with files and credentials. Values are merged in this order, later ones win: the chart's own, those of
// valuesFrom in their order, values. Maps are merged, anything else is replaced, and null takes a value of the chart away. YAML with aliases
// counts as what these stand for: 16 MiB at most for each text.
// An entry of valuesFrom with a targetPath is a single value, which replaces what is there. One that is optional is left out while its
// object does not exist; when it comes, the service is rolled out anew. Flux' valuesKey is key here.
// Charts get numbers as Helm reads them, others keep all digits of whole numbers.
// The values of a service with a valuesTemplate are rendered before (package templating): they may be made of the cluster's labels.
//
// A fingerprint stands for what comes of it on a cluster: for the chart or the files, the values, and the options labels and skipCRDs.
// What is on the cluster with the same fingerprint is neither fetched nor rendered again, whatever else changes: a time-out, the name
// of the template, or the set, which has another UID after a management cluster was restored. On the cluster the fingerprint is kept
// with a salt, and in the status without it, so that nobody can try out values of Secrets.
//
// While something can't be read, or a registry does not answer, what runs stays Deployed as long as nothing else says that it has to
// change; a condition Resolved of the service tells what is missing.
//
// A service that can't be worked out, whatever its chart or its files come to, has Failed alone: the other services of its set go on.
//
// # Order
//
// A service is touched when all that it depends on are Deployed, in whichever set of the cluster they are, in the template and
// version that their set lists. It is taken away when all that depend on it and are being taken away too are gone, in
// whichever set they are. Services that depend on each other in a circle don't wait for each other there. What another
// set of the cluster lists is not taken away, but left to that set.
//
// # Whose it is
//
// What is on a cluster is marked with the ServiceSet, this state manager, its framework and operator, and the management cluster
// (Config.Origin). What another one has is left alone: the service is Failed, and its condition Resolved says whose it is, with
// [ReasonConflict]. What was put there under a former name is taken over as it is; the former names are given until that is done.
// A set of the same namespace and name with another UID takes a service over as it is, too: such is the set of a restored management cluster. When
// two of them live, because two management clusters have one Origin, the one that has lost the service says so, with [ReasonConflict],
// and does not take it back. That it had the service is known until the operator starts anew, or the cluster was away: a cluster may have been
// restored meanwhile, with an earlier UID on it, which nobody is to be kept from taking over.
//
// What has the marks of a set that neither lists it nor has it in its status, such as after a management cluster was restored, is taken away, or
// handed over, as what the set has listed. It is looked for when the operator starts, when the cluster was away, and again until the status
// tells of it.
//
// # Kinds that come later
//
// A service waits for a kind that its cluster does not have, for Config.KindTimeout, then it has Failed. Nothing is fetched or rendered
// meanwhile, and it goes on when the kind comes, also after it has Failed.
//
// # Attempts
//
// What can't be put onto a cluster, or taken away, is tried again after ever longer pauses, of up to five minutes. Each service has its own: neither
// other services of the set that progress nor a hook that begins cut one short. Another version and [statemanager.RetryAnnotation] do.
//
// A service with maxAttempts is given up after so many failures: it is Failed, and left as it is, until its entry or what that names changes,
// [statemanager.RetryAnnotation] changes, or the cluster was away. A failure that passes without a change of the service does not count: no answer,
// a time-out, an API server or a webhook in trouble, a quota that is used up, what can't be fetched. The attempts are counted in the status of the
// set, so that an operator that starts anew goes on counting. Services are taken away without a limit.
//
// # Patches
//
// The patches of an entry change what its chart or its files come to (package patching), after the values are in and before anything is
// planned: they are in the plan, in the record of a release and in its hooks, and what differs from them is drift. Only the definitions in a
// chart's folder crds stay as they are, as with Helm. A patch that finds no object is an error, and the service stays as it is.
//
// # Adoption
//
// A service with adopt takes over what is there already, as it is: a Helm release of its name and namespace, whoever has made it with Helm or
// its library, or the objects of its manifests, which others have applied. First all of it gets the marks of the service, and nothing else
// changes: no revision, no hook, no field. What the service wants otherwise is changed by the next reconciliation; the notes of the first one
// say what that is, and so does the plan of a set with the sync mode DryRun. What marks objects of manifests as another tool's goes then too. What
// belongs to another service, keeper or controller is never taken over, nor are objects of a Helm release by manifests.
//
// Whoever had it has to let go of it before, or both write for ever:
//
//	helm            nothing has to be done
//	Flux            set spec.suspend on the HelmRelease or the Kustomization; when the service is Deployed, delete it: what is
//	                suspended is not uninstalled. A Kustomization needs spec.prune: false before that, and a HelmRelease a
//	                storageNamespace that is its targetNamespace: a release is looked for where it goes
//	Sveltos         set stopMatchingBehavior: LeavePolicies on the profile, and delete it
//	Argo CD         delete the Application without cascading: kubectl patch … finalizers: null
//	kubectl apply   nothing has to be done
//
// The way back. A release stays one of Helm's throughout. Take adopt out of the service, and the marks off the revisions: the service is Failed
// then, because the release is somebody else's. Then take the service out of its owner's list: it is forgotten, and what is on the cluster stays.
//
//	kubectl label secret -n NAMESPACE -l owner=helm,name=NAME services.operatorkit.io/owner- services.operatorkit.io/service- services.operatorkit.io/service-namespace-
//
// The objects of manifests stay, without their marks, when they have the annotation services.operatorkit.io/prune with the value "disabled" and
// the service is taken out of its owner's list.
//
// # Change windows
//
// While the changeWindows of a set are closed (package window), nothing of its services is changed: they keep the state that they have, or
// are Provisioning or Pending where it is not what is wanted, the condition Waiting says until when with [ReasonWindow], and the set is looked at
// again then. Drift is told, and put right in a window. A release of which a hook has begun goes on, also after its window. What is taken
// away waits only for windows with removals.
//
// # Tenants
//
// With a service account (the entry's serviceAccountName, that of the provider's config, or Config.DefaultServiceAccount) all requests for a
// service are made as system:serviceaccount:NAMESPACE:NAME, on its cluster, where NAMESPACE is that of the ServiceSet: what is created, changed,
// read by a chart's lookup and shown as drift is what that account may. The user of the kubeconfig needs the right to impersonate it, and else
// only those to list and watch what state managers have put there. The account needs, beside those for what it puts there, the rights to get,
// list, create, update, patch and delete Secrets in the namespace of the service, where releases and inventories are. Without the right to get
// that namespace it is taken to be there. A service is taken away with the rights of the account that it had, so that the account has to be there
// until then. Who may write to the cluster by other means may change there what he likes: the marks on his objects, too. So a release that only
// its marks say is the set's, neither the set nor its status, is taken away without its hooks: it may be forged, and its hooks would be run with
// the rights of the kubeconfig.
//
// # Clusters that can't be reached
//
// The states stay as they are, the condition Reachable tells why, and a notice comes when the cluster is back. So it is while a cluster
// has not answered yet, after a start or with another kubeconfig. What has changed in the set meanwhile does not count as seen. A set that is
// being deleted waits; [statemanager.LetGoAnnotation] ends that once it is known that the cluster can't be reached. While the kubeconfig lacks
// the rights to look at the cluster, with [ReasonForbidden], it is the same, the set is tried again, and nothing is let go of, because the
// cluster is there: grant the rights, or delete the Secret with the kubeconfig, without which the cluster can't be reached.
//
// # Conditions of a service
//
//	Healthy   True, False or Unknown, with the phase as the reason: how its objects are. What a kind says in a way of its own
//	          is told by the healthCheckExprs of the service, if Config.HealthChecks is set
//	Drifted   True while somebody else has changed what was put there: which objects
//	Resolved  False while something that the service is made of can't be read or fetched
//	Waiting   True while the service waits for others
//	Planned   in the sync mode DryRun: the plan
//
// # Secrets
//
// Values of Secrets are in no change, note, message or error of this package: it hides them in what carriers say, too.
package native
