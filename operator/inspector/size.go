package inspector

import (
	"encoding/json"
	"fmt"
	"slices"

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

// trim cuts what is too long to be kept, and returns about how many bytes are left. The values of
// changes belong to others too: what is cut is replaced.
func trim(r *framework.Record) int {
	r.Error = cut.Text(r.Error, maxText)
	size := recordBytes + len(r.Error) + triggerBytes*len(r.Triggers)
	for i := range r.Resources {
		of := &r.Resources[i]
		of.Error, of.Skipped = cut.Text(of.Error, maxText), cut.Text(of.Skipped, maxText)
		size += resourceBytes + len(of.Error) + stepBytes*len(of.Steps)
		of.Changes = trimChanges(of.Changes)
		for j := range of.Changes {
			c := &of.Changes[j]
			if size+changeSize(c) > maxRecord && changeSize(c) > 2*changeBytes {
				c.Description = fmt.Sprintf("%d fields, left out because the record is too large", len(c.Fields))
				c.Fields = nil
			}
			size += changeSize(c)
		}
	}
	return size
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
	c.Fields = slices.Clone(c.Fields)
	for i := range c.Fields {
		f := &c.Fields[i]
		f.Old, f.New = cutValue(f.Old), cutValue(f.New)
	}
}

// cutValue shortens a value that is too long, to the beginning of its JSON form.
func cutValue(value any) any {
	if valueSize(value) <= maxValue {
		return value
	}
	if text, ok := value.(string); ok {
		return cut.Text(text, maxValue)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return cut.Text(fmt.Sprint(value), maxValue)
	}
	return cut.Text(string(text), maxValue)
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

func changeSize(c *plan.Change) int {
	n := changeBytes + len(c.Description)
	for _, f := range c.Fields {
		n += fieldBytes + len(f.Path) + valueSize(f.Old) + valueSize(f.New)
	}
	return n
}
