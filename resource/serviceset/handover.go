package serviceset

import "fmt"

// A service goes from one owner to another without a gap: the new owner's ServiceSet gets it first, from the version in which
// it runs, and only then the old one's loses it. For the time between, a state manager must not take away a service that
// another ServiceSet of the cluster has.

// handedOver tells whether another owner has a service, and has it in its ServiceSet.
func (n *node) handedOver(owner *Owner) bool { return n.owner != owner && n.holder == n.owner }

// whoHasIt says who owns a service, and why.
func (n *node) whoHasIt(loser *Owner) string {
	why := fmt.Sprintf("has priority %d, %s has %d", n.owner.priority(), loser, loser.priority())
	if n.owner.priority() == loser.priority() {
		why = "has the same priority, and is older"
		if n.owner.Created.Equal(loser.Created) {
			why = "has the same priority and age, and comes first by name"
		}
	}
	return fmt.Sprintf("belongs to %s, which %s", n.owner, why)
}
