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
	nodes  []node
	chains *chains

	eligible []bool // all that a service depends on is ready
	ready    []bool // it runs in the desired version as well

	loops  map[int32]string // the services on cycles that only all owners together make
	placed []int32          // the nodes of the owner's ServiceSet, in the order of its list; -1 for what nobody lists
}

// newCluster works out who owns what, and how far it is. own is the graph of the owner's services.
func newCluster(in *Input, own *graph) *cluster {
	owners := byPrecedence(&in.Owner, in.Others)
	known := templates(in.Templates)
	c := &cluster{chains: newChains(in.Chains, known)}
	c.graph = c.claim(owners, &in.Owner, own)
	for _, o := range owners {
		placed := c.place(o)
		if o == &in.Owner {
			c.placed = placed
		}
	}
	for i := range c.nodes {
		c.resolve(&c.nodes[i], c.double[i])
	}
	c.settle()
	return c
}

// claim gives each service to the first owner that lists it.
func (c *cluster) claim(owners []*Owner, owner *Owner, own *graph) *graph {
	if len(owners) == 1 {
		c.nodes = make([]node, own.len())
		for i, s := range own.services {
			c.nodes[i] = node{desired: s, owner: owner, listed: true}
		}
		return own
	}
	var services []*v1alpha1.Service
	var ownerOf []*Owner
	double := map[int32]bool{}
	taken := map[client.ObjectKey]int32{}
	for _, o := range owners {
		for i := range o.Services {
			s := &o.Services[i]
			at, ok := taken[keyOf(s)]
			if ok {
				double[at] = double[at] || ownerOf[at] == o
				continue
			}
			taken[keyOf(s)] = int32(len(services))
			services = append(services, s)
			ownerOf = append(ownerOf, o)
		}
	}
	g := newGraph(services)
	c.nodes = make([]node, len(services))
	for i, s := range services {
		c.nodes[i] = node{desired: s, owner: ownerOf[i]}
		g.double[i] = double[int32(i)]
		_, c.nodes[i].listed = own.index[g.keys[i]]
	}
	return g
}

// place finds the services of an owner's ServiceSet, and returns their nodes. Owners come by precedence.
func (c *cluster) place(o *Owner) []int32 {
	if o.Set == nil {
		return nil
	}
	placed := make([]int32, len(o.Set.Spec.Services))
	for i := range o.Set.Spec.Services {
		s := &o.Set.Spec.Services[i]
		at, ok := c.index[entryKey(s)]
		if !ok {
			placed[i] = -1
			continue
		}
		placed[i] = at
		if n := &c.nodes[at]; n.owner == o || n.holder == nil {
			n.stored, n.holder, n.state = s, o, nil
		}
	}
	for i := range o.Set.Status.Services {
		s := &o.Set.Status.Services[i]
		at, ok := c.index[stateKey(s)]
		if !ok {
			continue
		}
		n := &c.nodes[at]
		if n.holder == o {
			n.state = s
		}
		if n.owner == o {
			n.ownState = s
		}
	}
	return placed
}

// resolve finds out which template and version is wanted, and fills in the version of what is stored.
func (c *cluster) resolve(n *node, double bool) {
	if n.holder == nil {
		n.state = n.ownState
	}
	preferred := ""
	if n.stored != nil {
		preferred = n.stored.Template
		c.fillStored(n)
	}
	n.goal, n.fault = c.chains.resolve(n.desired, preferred)
	if double {
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
	order := c.order()
	if len(order) < c.len() {
		c.findLoops()
	}
	c.eligible, c.ready = make([]bool, c.len()), make([]bool, c.len())
	for _, i := range order {
		eligible := !c.broken[i]
		for _, d := range c.dependencies(i) {
			eligible = eligible && c.ready[d]
		}
		c.eligible[i] = eligible
		c.ready[i] = eligible && c.nodes[i].arrived()
	}
}

func (c *cluster) findLoops() {
	c.loops = map[int32]string{}
	for _, cycle := range c.cycles() {
		for _, key := range cycle.Services {
			c.loops[c.index[key]] = cycle.String()
		}
	}
}

// arrived tells whether a service runs in the version that is wanted. Of one that is disabled, that is the one which is stored.
func (n *node) arrived() bool {
	if n.fault != nil || n.stored == nil {
		return false
	}
	at := versionOf(n.stored)
	return isDeployed(at, n.state) && (n.desired.Disable || equalServiceVersions(at, n.goal))
}

// unready adds the direct dependencies of a service that are not ready to a list, by key, and returns it.
func (c *cluster) unready(i int32, list []client.ObjectKey) []client.ObjectKey {
	before := len(list)
	for _, d := range c.dependencies(i) {
		if !c.ready[d] {
			list = append(list, c.keys[d])
		}
	}
	added := list[before:]
	if !slices.IsSortedFunc(added, compareKeys) {
		slices.SortFunc(added, compareKeys)
	}
	return list
}

// countUnready returns how many dependencies of services that are locked are not ready.
func (c *cluster) countUnready() int {
	count := 0
	for i := range int32(c.len()) {
		if c.eligible[i] {
			continue
		}
		for _, d := range c.dependencies(i) {
			if !c.ready[d] {
				count++
			}
		}
	}
	return count
}
