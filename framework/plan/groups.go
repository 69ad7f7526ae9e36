package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// minGroup is how many objects must have an equal change for a line about it.
const minGroup = 3

// groups writes the changes that several plans have, the most frequent first. The names of the
// changed objects don't count.
func (p *printer) groups(plans []*Plan) {
	objects := map[string]int{}
	for _, plan := range plans {
		seen := map[string]bool{}
		for _, r := range plan.Resources {
			for _, c := range r.Changes {
				seen[c.general()] = true
			}
		}
		for change := range seen {
			objects[change]++
		}
	}
	maps.DeleteFunc(objects, func(_ string, n int) bool { return n < minGroup })
	if len(objects) == 0 {
		return
	}
	p.line(0, bold, "the same for several objects")
	for _, change := range slices.SortedFunc(maps.Keys(objects), func(a, b string) int {
		return cmp.Or(cmp.Compare(objects[b], objects[a]), cmp.Compare(a, b))
	}) {
		p.line(1, regular, fmt.Sprintf("%d objects: %s", objects[change], p.short(Escape(change))))
	}
	p.blank()
}

// general returns the change without the name of its object.
func (c Change) general() string {
	text := fmt.Sprintf("%s %s", c.Action, cmp.Or(c.Object.Kind, "object"))
	if c.Action != Update {
		return text
	}
	if len(c.Fields) == 0 {
		return text + ": " + c.Description
	}
	var fields []string
	for _, f := range c.Fields {
		fields = append(fields, f.String())
	}
	return text + ": " + strings.Join(fields, ", ")
}
