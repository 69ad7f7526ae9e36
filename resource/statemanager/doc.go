// Package statemanager is the contract of what carries ServiceSets out: a [StateManager] says which objects carry the services
// of a set on its cluster, what has to be done with them, and how the services are.
//
//	manager, err := mine.New(mine.Config{…})
//	sets, err := statemanagers.New(dependencies, statemanagers.Config{
//		Managers: []statemanagers.Manager{{Provider: "mine", StateManager: manager}},
//	})
//
// Whoever writes one implements Compute, which reads, and CarryOut, which does what Compute said. All else (watching, the
// order of things, the status, retries, plans, the page) comes from package statemanagerresource and the operator
// of package operator/statemanagers.
//
// # One reconciliation of a set
//
//	Compute ──▶ status: how the services are, and what is begun ──▶ CarryOut of each operation ──▶ another reconciliation
//
// The status is written before anything is done, so it tells of everything that was begun, also when the operator ends
// in mid-work: a service stands in the status before anything of it is on a cluster, and until nothing is. What CarryOut
// has achieved is seen by the next Compute, which comes at once.
//
// # What a state manager owes
//
//   - Level-triggered: Compute looks at the world, not at what was done before. What it can't see there, such as the error of
//     the last try, it may keep in memory; to lose it costs another try and nothing else.
//   - A service's failure is its own. Its message is the first line that a person needs.
//   - What a service depends on is there before it, and is taken away after it, in whichever set of the cluster it is.
//   - What another set of the same cluster lists is not taken away: it is handed over. Set.SharesProvider tells whether the same state
//     manager carries that set out, for those that can hand over to themselves alone.
//   - While the cluster can't be looked at, Work.Stale is set: else the set counts as rolled out in a generation that nobody has seen there.
//   - LastDeployed has a fingerprint of the configuration that was Deployed. As long as it is the same, a passing error (a
//     registry without an answer, a template that can't be read for a moment) changes nothing on the cluster, and the
//     service stays Deployed.
//   - Values of Secrets are in no change, note, error, state or log.
package statemanager
