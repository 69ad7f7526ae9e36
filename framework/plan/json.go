package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Version is the version of the JSON form of plans. It is incremented when a field is removed or
// gets another meaning, and not when one is added.
const Version = 1

// document is the JSON form of plans.
type document struct {
	Version int     `json:"version"`
	Plans   []*Plan `json:"plans"`
	Summary *Counts `json:"summary,omitempty"`
}

// WriteJSON writes plans as JSON, for programs and for ReadJSON. Nothing is cut, and values of
// Secrets are not in it. The form is that of these types, in
//
//	{"version": 1, "plans": [ … ], "summary": {"create": 2, "update": 1, "delete": 0}}
func WriteJSON(w io.Writer, plans []*Plan) error {
	var sum Counts
	for _, p := range plans {
		sum = sum.Add(p.Counts())
	}
	if plans == nil {
		plans = []*Plan{}
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(document{Version, plans, &sum})
}

// ReadJSON reads the output of WriteJSON. An unknown version is an error. Unknown fields are
// ignored.
func ReadJSON(r io.Reader) ([]*Plan, error) {
	decoder := json.NewDecoder(r)
	var d document
	if err := decoder.Decode(&d); err != nil {
		return nil, fmt.Errorf("read plans: %w: they must be the JSON that was written for them", err)
	}
	if d.Version != Version {
		return nil, fmt.Errorf("read plans: they are of version %d, and this program knows version %d: make them anew",
			d.Version, Version)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("read plans: there is something after them: one file holds one JSON value")
	}
	for i, p := range d.Plans {
		if p == nil {
			return nil, fmt.Errorf("read plans: plan %d is null", i)
		}
	}
	return d.Plans, nil
}

// UnmarshalJSON implements json.Unmarshaler. Numbers become int64 if possible.
func (f *FieldChange) UnmarshalJSON(data []byte) error {
	var fields struct {
		Path      string          `json:"path"`
		Old       json.RawMessage `json:"old"`
		New       json.RawMessage `json:"new"`
		Sensitive bool            `json:"sensitive"`
	}
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	*f = FieldChange{Path: fields.Path, Sensitive: fields.Sensitive}
	if err := readValue(fields.Old, &f.Old); err != nil {
		return err
	}
	return readValue(fields.New, &f.New)
}

func readValue(data json.RawMessage, value *any) error {
	if data == nil {
		return nil
	}
	return utiljson.Unmarshal(data, value)
}
