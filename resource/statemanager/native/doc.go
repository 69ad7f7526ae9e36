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
// valuesFrom in their order, values. Maps are merged, anything else is replaced, and null takes a value of the chart away.
//
// A fingerprint stands for all of it. What is on the cluster with the same fingerprint is neither fetched nor rendered again.
// While something can't be read, or a registry does not answer, what runs stays Deployed as long as nothing else says that
// it has to change; a condition Resolved of the service tells what is missing.
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
//
// # Clusters that can't be reached
//
// The states stay as they are, the condition Reachable tells why, and a notice comes when the cluster is back. A set that is
// being deleted waits; [statemanager.LetGoAnnotation] ends that. So it is while the kubeconfig lacks the rights to look at the
// cluster, with [ReasonForbidden], and the set is tried again.
//
// # Conditions of a service
//
//	Healthy   True, False or Unknown, with the phase as the reason: how its objects are
//	Drifted   True while somebody else has changed what was put there: which objects
//	Resolved  False while something that the service is made of can't be read or fetched
//	Waiting   True while the service waits for others
//	Planned   in the sync mode DryRun: the plan
//
// # Secrets
//
// Values of Secrets are in no change, note, message or error of this package: it hides them in what carriers say, too.
package native
