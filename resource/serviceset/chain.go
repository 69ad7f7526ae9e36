package serviceset

import (
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// templates are the ServiceTemplates of a namespace by name.
type templates map[string]*v1alpha1.ServiceTemplate

// chain is a ServiceTemplateChain as a graph. Nodes are numbers.
type chain struct {
	nodes []chainNode
	index map[string]int32
	out   [][]int32
	in    [][]int32

	routes map[int32]*routes // by goal
}

// chainNode is a template of a chain.
type chainNode struct {
	name    string
	version string          // empty if nothing says it
	semver  *semver.Version // nil if it is none
}

// CheckChain returns what is wrong with a ServiceTemplateChain, nil if nothing is: it names every template to which the chain gives
// several versions.
func CheckChain(spec *v1alpha1.ServiceTemplateChainSpec) error {
	_, err := newChain(spec, nil)
	return err
}

// newChain makes a graph of a chain. A template stands for the version that the chain gives it, or else for its own. The
// error says that the chain gives a template several.
func newChain(spec *v1alpha1.ServiceTemplateChainSpec, known templates) (*chain, error) {
	c := &chain{index: make(map[string]int32, len(spec.SupportedTemplates)), routes: map[int32]*routes{}}
	var contradictions []string
	for i := range spec.SupportedTemplates {
		supported := &spec.SupportedTemplates[i]
		from := c.node(supported.Name)
		for _, upgrade := range supported.AvailableUpgrades {
			to := c.node(upgrade.Name)
			if stated := &c.nodes[to].version; *stated == "" {
				*stated = upgrade.Version
			} else if upgrade.Version != "" && !equalVersions(*stated, upgrade.Version) {
				contradictions = append(contradictions, fmt.Sprintf("template %s has the versions %s and %s", upgrade.Name, *stated, upgrade.Version))
			}
			if from != to && !slices.Contains(c.out[from], to) {
				c.out[from] = append(c.out[from], to)
				c.in[to] = append(c.in[to], from)
			}
		}
	}
	if len(contradictions) > 0 {
		return nil, fmt.Errorf("contradicts itself: %s: give each template one version", strings.Join(contradictions, ", "))
	}
	for i := range c.nodes {
		n := &c.nodes[i]
		if t := known[n.name]; n.version == "" && t != nil {
			n.version = templateVersion(t)
		}
		n.semver = parseVersion(n.version)
	}
	return c, nil
}

func (c *chain) node(name string) int32 {
	if i, ok := c.index[name]; ok {
		return i
	}
	i := int32(len(c.nodes))
	c.index[name] = i
	c.nodes = append(c.nodes, chainNode{name: name})
	c.out = append(c.out, nil)
	c.in = append(c.in, nil)
	return i
}

// template returns the template that stands for a version: the preferred one if it does, else the first by name.
func (c *chain) template(version, preferred string) (string, bool) {
	found := ""
	for i := range c.nodes {
		n := &c.nodes[i]
		if n.version == "" || !equalVersions(n.version, version) {
			continue
		}
		if n.name == preferred {
			return n.name, true
		}
		if found == "" || n.name < found {
			found = n.name
		}
	}
	return found, found != ""
}

// way returns the next template on the way from one template to another, and how many steps are left with it.
func (c *chain) way(from, to string) (next v1alpha1.AvailableUpgrade, steps int, ok bool) {
	start, ok := c.index[from]
	if !ok {
		return v1alpha1.AvailableUpgrade{}, 0, false
	}
	goal, ok := c.index[to]
	if !ok || start == goal {
		return v1alpha1.AvailableUpgrade{}, 0, false
	}
	r := c.routesTo(goal)
	if r.next[start] < 0 {
		return v1alpha1.AvailableUpgrade{}, 0, false
	}
	return c.upgrade(r.next[start]), r.steps(start, goal), true
}

func (c *chain) upgrade(i int32) v1alpha1.AvailableUpgrade {
	return v1alpha1.AvailableUpgrade{Name: c.nodes[i].name, Version: c.nodes[i].version}
}

// routesTo returns the ways to a goal. They are computed once.
func (c *chain) routesTo(goal int32) *routes {
	r, ok := c.routes[goal]
	if !ok {
		r = newRoutes(c, goal)
		c.routes[goal] = r
	}
	return r
}
