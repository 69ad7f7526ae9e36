package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

const (
	// minGroup is how many objects must have an equal change for a line about it, and maxGroups is
	// how many such lines there are.
	minGroup  = 3
	maxGroups = 20
)

// group is a change that several plans have, of objects of one kind.
type group struct {
	text    string
	objects int
}

// groupsOf returns the changes that several plans have, the most frequent first. The names of the
// changed objects don't count.
func groupsOf(plans []*Plan) (groups []group) {
	objects := map[string]int{}
	for _, p := range plans {
		seen := map[string]bool{}
		for _, r := range p.Resources {
			for _, c := range r.Changes {
				if text := c.general(); !seen[text] {
					seen[text] = true
					objects[text]++
				}
			}
		}
	}
	for text, n := range objects {
		if n >= minGroup {
			groups = append(groups, group{text, n})
		}
	}
	slices.SortFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(b.objects, a.objects), cmp.Compare(a.text, b.text))
	})
	return groups
}

// general returns the change without the name of its object.
func (c Change) general() string {
	text := fmt.Sprintf("%s %s", c.Action, cmp.Or(c.Object.Kind, "object"))
	if c.Action != Update {
		return text
	}
	var fields []string
	for _, f := range c.Fields {
		fields = append(fields, f.String())
	}
	if len(fields) == 0 {
		fields = append(fields, c.Description)
	}
	return text + ": " + strings.Join(fields, ", ")
}

// groups writes what several plans have in common.
func (p *printer) groups(plans []*Plan) {
	groups := groupsOf(plans)
	if len(groups) == 0 {
		return
	}
	p.line(0, bold, "the same for several objects")
	for i, g := range groups {
		if i == maxGroups && p.options.MaxLines >= 0 {
			p.line(1, faint, fmt.Sprintf("… and %d more", len(groups)-i))
			break
		}
		p.line(1, regular, fmt.Sprintf("%d objects: %s", g.objects, p.short(Escape(g.text))))
	}
	p.blank()
}
