package statusmap_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/internal/statusmap"
)

type fields = map[string]any

func of(conditions ...any) fields { return fields{"conditions": conditions} }

func TestAChangeOfAStatusIsMadeOnToWhatOthersHaveWritten(t *testing.T) {
	ready := func(status string) fields { return fields{"type": "Ready", "status": status} }
	theirs := fields{"type": "BackedUp", "status": "True", "severity": "none"}
	for name, c := range map[string]struct{ status, before, after, want fields }{
		"nothing":                          {fields{"billing": "paid"}, fields{"url": "a"}, fields{"url": "a"}, fields{"billing": "paid"}},
		"fields":                           {fields{"billing": "paid", "url": "b"}, fields{"url": "a", "host": "h"}, fields{"url": "c"}, fields{"billing": "paid", "url": "c"}},
		"inner fields":                     {fields{"x": fields{"theirs": 1, "b": 1}}, fields{"x": fields{"a": 1, "b": 1}}, fields{"x": fields{"a": 2}}, fields{"x": fields{"theirs": 1, "a": 2}}},
		"inner fields of nothing":          {fields{}, fields{"x": fields{"a": 1, "b": 1}}, fields{"x": fields{"a": 2}}, fields{"x": fields{"a": 2}}},
		"a new condition":                  {of(theirs), of(), of(ready("True")), of(theirs, ready("True"))},
		"a changed one":                    {of(ready("False"), theirs), of(ready("False")), of(ready("True")), of(ready("True"), theirs)},
		"one that is gone":                 {of(ready("False"), theirs), of(ready("False")), of(), of(theirs)},
		"one that somebody has taken away": {of(theirs), of(ready("False")), of(ready("False")), of(theirs)},
		"theirs, of which less is known":   {of(theirs), of(fields{"type": "BackedUp", "status": "True"}), of(fields{"type": "BackedUp", "status": "True"}), of(theirs)},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, statusmap.Onto(c.status, c.before, c.after)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
