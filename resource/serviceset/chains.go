package serviceset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// chains are the ServiceTemplateChains of a namespace by name. A graph is made of one when it is needed first.
type chains struct {
	objects map[string]*v1alpha1.ServiceTemplateChain
	known   templates
	made    map[string]madeChain
}

type madeChain struct {
	chain *chain
	why   *fault
}

func newChains(objects map[string]*v1alpha1.ServiceTemplateChain, known templates) *chains {
	return &chains{objects: objects, known: known, made: map[string]madeChain{}}
}

// get returns a chain, or why it can't be used.
func (c *chains) get(name string) (*chain, *fault) {
	made, ok := c.made[name]
	if !ok {
		made = c.make(name)
		c.made[name] = made
	}
	return made.chain, made.why
}

func (c *chains) make(name string) madeChain {
	object := c.objects[name]
	if object == nil {
		return madeChain{why: &fault{v1alpha1.ReasonChainMissing, fmt.Sprintf("ServiceTemplateChain %s does not exist: create it", name)}}
	}
	made, err := newChain(&object.Spec, c.known)
	if err != nil {
		return madeChain{why: &fault{v1alpha1.ReasonChainInvalid, fmt.Sprintf("ServiceTemplateChain %s %v", name, err)}}
	}
	return madeChain{chain: made}
}

// installable implements ways.
func (c *chains) installable(s *v1alpha1.Service, goal v1alpha1.ServiceVersion) *fault {
	if s.TemplateChain == "" {
		return nil
	}
	chain, why := c.get(s.TemplateChain)
	if why != nil {
		return why
	}
	if _, ok := chain.index[goal.Template]; !ok {
		return notInChain(s, goal, chain)
	}
	return nil
}

// way implements ways.
func (c *chains) way(s *v1alpha1.Service, from, goal v1alpha1.ServiceVersion) (v1alpha1.AvailableUpgrade, int, *fault) {
	if why := c.installable(s, goal); why != nil {
		return v1alpha1.AvailableUpgrade{}, 0, why
	}
	chain, why := c.get(s.TemplateChain)
	if why != nil {
		return v1alpha1.AvailableUpgrade{}, 0, why
	}
	next, steps, ok := chain.way(from.Template, goal.Template)
	if !ok {
		return v1alpha1.AvailableUpgrade{}, 0, noWay(s, from, goal, chain)
	}
	return next, steps, nil
}

func notInChain(s *v1alpha1.Service, goal v1alpha1.ServiceVersion, chain *chain) *fault {
	return &fault{v1alpha1.ReasonNotInChain, fmt.Sprintf("%s is out of reach: template %s is not in ServiceTemplateChain %s: add it there (it lists %s)",
		wanted(goal), goal.Template, s.TemplateChain, listed(chain.nodes))}
}

func noWay(s *v1alpha1.Service, from, goal v1alpha1.ServiceVersion, chain *chain) *fault {
	var to []chainNode
	if start, ok := chain.index[from.Template]; ok {
		for _, i := range chain.reachable(start) {
			to = append(to, chain.nodes[i])
		}
	}
	return &fault{v1alpha1.ReasonNoWay, fmt.Sprintf("%s is out of reach: ServiceTemplateChain %s does not lead from template %s to %s (from %s it leads to %s)",
		wanted(goal), s.TemplateChain, from.Template, goal.Template, label(from), listed(to))}
}

// wanted names a version that is out of reach.
func wanted(goal v1alpha1.ServiceVersion) string {
	if goal.Version == "" {
		return fmt.Sprintf("template %s, which has no version,", goal.Template)
	}
	return "version " + goal.Version
}

// mostListed is how many templates of a chain a message names.
const mostListed = 10

// listed names templates of a chain, with their versions.
func listed(nodes []chainNode) string {
	var names []string
	for i := range nodes {
		name := nodes[i].name
		if version := nodes[i].version; version != "" {
			name = version + " as " + name
		}
		names = append(names, name)
	}
	slices.Sort(names)
	if more := len(names) - mostListed; more > 0 {
		names = append(names[:mostListed], fmt.Sprintf("%d more", more))
	}
	return cmp.Or(strings.Join(names, ", "), "nothing")
}

// noTemplate says what a service lacks that nobody can make.
const noTemplate = "set template; or set templateChain and version, which name a template together"

// resolve returns the template and the version that a service stands for. Where only a chain and a version say the
// template, and several templates have the version, the preferred one is taken.
func (c *chains) resolve(s *v1alpha1.Service, preferred string) (v1alpha1.ServiceVersion, *fault) {
	resolved := goalOf(s)
	if resolved.Template == "" {
		if s.TemplateChain == "" || s.Version == "" {
			return resolved, &fault{v1alpha1.ReasonTemplateMissing, noTemplate}
		}
		chain, why := c.get(s.TemplateChain)
		if why != nil {
			return resolved, why
		}
		name, ok := chain.template(s.Version, preferred)
		if !ok {
			return resolved, &fault{v1alpha1.ReasonNotInChain,
				fmt.Sprintf("ServiceTemplateChain %s has no template with version %s: add one (it lists %s)", s.TemplateChain, s.Version, listed(chain.nodes))}
		}
		resolved.Template = name
	}
	t := c.known[resolved.Template]
	if t == nil {
		return resolved, &fault{v1alpha1.ReasonTemplateMissing, fmt.Sprintf("ServiceTemplate %s does not exist: create it", resolved.Template)}
	}
	if resolved.Version == "" {
		resolved.Version = templateVersion(t)
	}
	return resolved, nil
}
