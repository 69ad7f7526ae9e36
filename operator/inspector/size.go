package inspector

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/internal/cut"
)

// What is kept of one record is limited: a few large values must not push out the records of everything else.
const (
	maxRecord  = 256 << 10 // bytes of all
	maxText    = 4 << 10   // bytes of an error or a description
	maxValue   = 2 << 10   // bytes of the JSON form of a value
	maxFields  = 200       // fields of one change
	maxChanges = 200       // changes of one resource
)

// What things take in memory beside their texts, in bytes, about.
const (
	historyBytes  = 400
	recordBytes   = 610
	resourceBytes = 150
	stepBytes     = 80
	changeBytes   = 180
	fieldBytes    = 80
	triggerBytes  = 100
)

// trim cuts what is too long to be kept, and returns the size that is left. The values of changes belong to others too:
// what is cut is replaced.
func trim(r *framework.Record) int {
	r.Error = cut.Text(r.Error, maxText)
	for i := range r.Resources {
		of := &r.Resources[i]
		of.Error = partOf(r.Error, cut.Text(of.Error, maxText))
		of.Skipped = cut.Text(of.Skipped, maxText)
		of.Changes = trimChanges(of.Changes)
	}
	size := sizeOf(r)
	for i := len(r.Resources) - 1; i >= 0 && size > maxRecord; i-- {
		of := &r.Resources[i]
		for j := len(of.Changes) - 1; j >= 0 && size > maxRecord; j-- {
			size -= leaveOut(&of.Changes[j])
		}
	}
	return size
}

// leaveOut drops what a change says beside its object, and returns by how many bytes that made it smaller.
func leaveOut(c *plan.Change) int {
	if len(c.Fields) == 0 && len(c.Description) < maxText/10 {
		return 0
	}
	before := changeSize(c)
	c.Description = fmt.Sprintf("%d fields, left out because the record is too large", len(c.Fields))
	c.Fields = nil
	return before - changeSize(c)
}

// partOf returns a text that shares its memory with another one of which it is a part: the error of a resource most often is one of
// that of the reconciliation.
func partOf(whole, text string) string {
	if at := strings.Index(whole, text); at >= 0 {
		return whole[at : at+len(text)]
	}
	return text
}

// trimChanges returns the first of the changes, cut, and says how many more there are. The slice is the caller's to change.
func trimChanges(changes []plan.Change) []plan.Change {
	if left := len(changes) - maxChanges; left > 0 {
		changes = append(slices.Clone(changes[:maxChanges]), plan.Change{
			Action: changes[maxChanges].Action, Description: fmt.Sprintf("… and %d more changes", left),
		})
	}
	for i := range changes {
		trimChange(&changes[i])
	}
	return changes
}

func trimChange(c *plan.Change) {
	c.Description = cut.Text(c.Description, maxText)
	if left := len(c.Fields) - maxFields; left > 0 {
		c.Fields = append(slices.Clone(c.Fields[:maxFields]), plan.FieldChange{Path: fmt.Sprintf("… and %d more fields", left)})
	}
	cloned := false
	for i, f := range c.Fields {
		old, oldCut := cutValue(f.Old)
		now, newCut := cutValue(f.New)
		if !oldCut && !newCut {
			continue
		}
		if !cloned {
			c.Fields, cloned = slices.Clone(c.Fields), true
		}
		c.Fields[i].Old, c.Fields[i].New = old, now
	}
}

// cutValue shortens a value whose JSON form is too long, to the beginning of that.
func cutValue(value any) (any, bool) {
	switch v := value.(type) {
	case nil, bool, int64, float64:
		return value, false
	case string:
		return cut.Text(v, maxValue), len(v) > maxValue
	}
	if valueSize(value) <= maxValue {
		return value, false
	}
	text, err := json.Marshal(value)
	if err != nil {
		return cut.Text(fmt.Sprint(value), maxValue), true
	}
	return cut.Text(string(text), maxValue), true
}

// valueSize is about how many bytes a JSON value takes.
func valueSize(value any) int {
	switch v := value.(type) {
	case string:
		return len(v)
	case []any:
		n := 0
		for _, e := range v {
			n += 16 + valueSize(e)
		}
		return n
	case map[string]any:
		n := 0
		for name, e := range v {
			n += 48 + len(name) + valueSize(e)
		}
		return n
	}
	return 8
}

// sizeOf is about how many bytes a record takes. Names that are constant, such as those of resources, are not counted.
func sizeOf(r *framework.Record) int {
	n := recordBytes + len(r.Error) + len(r.TraceID) + triggerBytes*len(r.Triggers)
	for _, t := range r.Triggers {
		n += len(t.Namespace) + len(t.Name)
	}
	for i := range r.Resources {
		of := &r.Resources[i]
		n += resourceBytes + stepBytes*len(of.Steps)
		if !strings.Contains(r.Error, of.Error) {
			n += len(of.Error)
		}
		for j := range of.Changes {
			n += changeSize(&of.Changes[j])
		}
	}
	return n
}

func changeSize(c *plan.Change) int {
	n := changeBytes + len(c.Description)
	for _, f := range c.Fields {
		n += fieldBytes + len(f.Path) + valueSize(f.Old) + valueSize(f.New)
	}
	return n
}
