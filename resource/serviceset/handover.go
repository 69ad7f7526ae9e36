package serviceset

import (
	"fmt"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// A service goes from one owner to another without a gap: the new owner's ServiceSet gets it first, as the old one's has it, and
// only then the old one's loses it. As long as both have it, it does not change: a state manager does the same for either,
// and must not take away a service that another ServiceSet of the cluster has. After that, the new owner has its way.

// handover is what the ServiceSet of an owner has to do with a service that somebody lists, as far as that follows from who has it.
type handover string

const (
	own      handover = "own"      // it is the owner's, and changes as dependencies and steps have it
	taking   handover = "taking"   // it comes from another one's set, as it is there
	awaiting handover = "awaiting" // it stays as it is until another one's set, which has it too, lets it go
	lending  handover = "lending"  // it is another one's, and stays as it is until that one's set has it for good
	givenUp  handover = "given up" // it is another one's, whose set has it for good: it is left out
)

// handover decides by who lists a service, whose set has it, and whose has it too:
//
//	lists    has it               has it too   it is
//	owner    nobody, owner        nobody       own
//	owner    owner                another      awaiting
//	owner    another              any          taking
//	another  that one, for good   any          given up
//	another  anybody else         any          lending
//
// A set that is being deleted has nothing for good. Where several sets have a service, that of the one who lists it counts first.
func (n *node) handover(owner *Owner) handover {
	switch {
	case n.owner != owner && n.holder == n.owner && !n.holder.isLeaving():
		return givenUp
	case n.owner != owner:
		return lending
	case n.holder != nil && n.holder != owner:
		return taking
	case n.also != nil:
		return awaiting
	}
	return own
}

// isLeaving tells whether an owner's ServiceSet is being deleted: it says what runs, but not for long.
func (o *Owner) isLeaving() bool { return o.Set != nil && o.Set.DeletionTimestamp != nil }

// takeOver decides that a service comes from another owner's ServiceSet.
func (r *resolver) takeOver(n *node, d Decision) {
	entry := *n.stored
	entry.Namespace = n.key.Namespace
	d.To, d.Reason = versionOf(&entry), v1alpha1.ReasonInFlight
	d.Message = fmt.Sprintf("is taken over from %s as it is", n.holder)
	r.explainStuck(&d, n.holder)
	r.deploy(entry, d)
}

// explainStuck says in a decision on a handover that it can't go on, if that is so: the one who has the service so far can't let it
// go.
func (r *resolver) explainStuck(d *Decision, from *Owner) {
	if fault := r.stuck(from); fault != nil {
		d.Reason = v1alpha1.ReasonHandoverStuck
		d.Message = fmt.Sprintf("stays as it is until %s lets it go, which can't be done: %s", from, fault)
	}
}

// stuck returns why the ServiceSet of an owner stays as it is, nil if nothing keeps it.
func (c *cluster) stuck(o *Owner) error {
	fault, known := c.faults[o]
	if !known {
		_, fault = c.own(o)
		c.faults[o] = fault
	}
	return fault
}

// whoLetsGo says whose ServiceSet has a service besides that of its owner.
func (n *node) whoLetsGo() string {
	return fmt.Sprintf("is taken over from %s, and stays as it is until that has let it go", n.also)
}

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
