package serviceset

import (
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// cluster is all services of a cluster, each as its owner wants it, and how far each of them is.
type cluster struct {
	*graph
	owners     []*Owner // by precedence
	precedence *precedence
	nodes      []node
	chains     *chains
	leaving    *leaving

	eligible []bool             // all that a service depends on is ready
	ready    []bool             // it runs in the desired version as well
	waits    []client.ObjectKey // what services were said to wait for: one list for many short ones

	loops map[int32]string // the services on cycles that only all owners together make

	faults map[*Owner]error // why their ServiceSets stay as they are, as far as it is known; nil for none
}

// node is a service of a cluster, whoever owns it.
type node struct {
	*listing // by its owner

	goal  v1alpha1.ServiceVersion
	fault *fault // why it can't be resolved

	stored *v1alpha1.ServiceWithValues // in the owner's ServiceSet; or in that of another owner, which has had it so far
	state  *v1alpha1.ServiceState      // of the same ServiceSet
	holder *Owner                      // whose ServiceSet that is, nil if there is none
	also   *Owner                      // another one whose ServiceSet has it too, nil if there is none
	rest   *v1alpha1.ServiceState      // what the status of the owner's set says, or else of another one, also if none has the service
}

// newCluster works out who owns what, and how far it is. Owners come by precedence.
func newCluster(owners []*Owner, known templates, objects map[string]*v1alpha1.ServiceTemplateChain) *cluster {
	count := 0
	for _, o := range owners {
		count += len(o.Services)
	}
	all := make([]listing, 0, count)
	for _, o := range owners {
		all = listings(all, o)
	}
	precedence := newPrecedence(owners)
	c := &cluster{graph: newGraph(all, precedence), owners: owners, precedence: precedence, chains: newChains(objects, known), faults: map[*Owner]error{}}
	c.nodes = make([]node, c.len())
	for i := range c.nodes {
		c.nodes[i].listing = &c.services[i]
	}
	allListed := true
	for _, o := range owners {
		allListed = c.place(o) && allListed
	}
	if !allListed {
		c.leaving = newLeaving(c)
	}
	for i := range c.nodes {
		c.resolve(&c.nodes[i])
	}
	c.settle()
	return c
}

// place finds the services of an owner's ServiceSet. It tells whether somebody lists each of them.
func (c *cluster) place(o *Owner) (allListed bool) {
	if o.Set == nil {
		return true
	}
	allListed = true
	next := int32(0)
	for i := range o.Set.Spec.Services {
		s := &o.Set.Spec.Services[i]
		at, ok := c.find(s.Key(), next)
		if !ok {
			allListed = false
			continue
		}
		next = at + 1
		c.nodes[at].place(o, s)
	}
	next = 0
	for i := range o.Set.Status.Services {
		s := &o.Set.Status.Services[i]
		if at, ok := c.find(s.Key(), next); ok {
			next = at + 1
			c.nodes[at].report(o, s)
		}
	}
	return allListed
}

// report notes what the status of o's ServiceSet says.
func (n *node) report(o *Owner, s *v1alpha1.ServiceState) {
	if n.holder == o {
		n.state = s
	}
	if n.owner == o || n.rest == nil {
		n.rest = s
	}
}

// place notes that a service is in the ServiceSet of o.
func (n *node) place(o *Owner, s *v1alpha1.ServiceWithValues) {
	switch {
	case n.holder == nil || n.holder == o:
		n.stored, n.holder = s, o
	case n.owner == o:
		n.also = n.holder
		n.stored, n.holder, n.state = s, o, nil
	default:
		n.also = o
	}
}

// resolve finds out which template and version is wanted, and fills in the version of what is stored.
func (c *cluster) resolve(n *node) {
	if n.holder == nil {
		n.state = n.rest
	}
	preferred := ""
	if n.stored != nil {
		preferred = n.stored.Template
		c.fillStored(n)
	}
	n.goal, n.fault = c.chains.resolve(n.service, preferred)
	if n.double {
		n.fault = &fault{v1alpha1.ReasonDuplicate, fmt.Sprintf("%s lists the service more than once: keep one", n.owner)}
	}
}

// fillStored gives a service that is stored without a version the one of its template. What is given stays as it is.
func (c *cluster) fillStored(n *node) {
	if n.stored.Version != "" {
		return
	}
	if t := c.chains.known[n.stored.Template]; t != nil {
		filled := *n.stored
		filled.Version = templateVersion(t)
		n.stored = &filled
	}
}

// settle finds out which services are ready, and which may be touched. What is on a cycle, or above one, is neither.
func (c *cluster) settle() {
	c.eligible, c.ready = make([]bool, c.len()), make([]bool, c.len())
	unready := 0
	for _, i := range c.order {
		before := unready
		for _, d := range c.dependencies(i) {
			if !c.ready[d] {
				unready++
			}
		}
		c.eligible[i] = !c.broken[i] && unready == before
		c.ready[i] = c.eligible[i] && c.nodes[i].arrived()
	}
	c.waits = make([]client.ObjectKey, 0, unready)
	c.loops = map[int32]string{}
	for _, cycle := range c.cycles() {
		for _, key := range cycle.Services {
			c.loops[c.index[key]] = cycle.String()
		}
	}
}

// arrived tells whether a service runs in the version and with the values that are wanted, or is gone if it is to be uninstalled. Of one that is
// disabled, those are the ones which are stored. What a ServiceSet has that is being deleted does not run for long.
func (n *node) arrived() bool {
	if n.fault != nil || n.stored == nil || n.holder.isLeaving() || !n.observed() {
		return false
	}
	at := versionOf(n.stored)
	if done := isDone(at, n.stored, n.state); !done || n.service.Disable {
		return done
	}
	wanted := entry(n.service, n.goal, nil)
	return equalServiceVersions(at, n.goal) && sameValues(n.stored, &wanted)
}

// unready returns the direct dependencies of a service that are not ready, each once and by key.
func (c *cluster) unready(i int32) []client.ObjectKey {
	before := len(c.waits)
	for _, d := range c.dependencies(i) {
		if !c.ready[d] {
			c.waits = append(c.waits, c.key(d))
		}
	}
	return slices.Clip(c.waits[before:])
}
