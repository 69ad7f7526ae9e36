package plan_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/framework/plan"
)

// simple is a plan with the given changes.
func simple(name string, changes ...plan.Change) *plan.Plan {
	p := &plan.Plan{
		Object: plan.Object{Kind: "Website", Namespace: "default", Name: name}, Event: plan.UpdateEvent, Outcome: plan.Planned,
	}
	p.Resources = []plan.Resource{{Name: "pages", Changes: changes}}
	return p
}

func TestTextShowsEveryChange(t *testing.T) {
	wantGolden(t, "plan.txt", []byte(text(t, []*plan.Plan{website()}, plan.TextOptions{})))
}

func TestTextWithColours(t *testing.T) {
	colored := text(t, []*plan.Plan{website()}, plan.TextOptions{Color: true})
	wantGolden(t, "plan.color.txt", []byte(colored))
	for _, s := range []string{"bold", "faint", "red", "green", "yellow"} {
		code := map[string]string{"bold": "1", "faint": "2", "red": "31", "green": "32", "yellow": "33"}[s]
		colored = strings.ReplaceAll(colored, "\x1b["+code+"m", "")
	}
	plain := text(t, []*plan.Plan{website()}, plan.TextOptions{})
	if diff := cmp.Diff(plain, strings.ReplaceAll(colored, "\x1b[0m", "")); diff != "" {
		t.Errorf("the words with and without colours differ:\n%s", diff)
	}
}

func TestTextCutsNothingWhenAskedTo(t *testing.T) {
	got := text(t, []*plan.Plan{website()}, plan.TextOptions{MaxValue: -1, MaxLines: -1})
	for _, value := range []string{strings.Repeat("ä", 300), strings.Repeat("registry/", 50) + "web:2"} {
		if !strings.Contains(got, value) {
			t.Errorf("%q is not in:\n%s", value, got)
		}
	}
	if cut := text(t, []*plan.Plan{website()}, plan.TextOptions{MaxLines: 1}); !strings.Contains(cut, "… (1 more lines)") {
		t.Errorf("lines are not cut:\n%s", cut)
	}
}

func TestTextCountsWhatAStatusReports(t *testing.T) {
	reported := func(fields ...string) []*plan.Plan {
		change := plan.Change{Action: plan.Update, Object: plan.Object{Kind: "Website", Name: "home"}}
		for _, path := range fields {
			change.Fields = append(change.Fields, plan.FieldChange{Path: path, New: "x"})
		}
		return []*plan.Plan{simple("home", change)}
	}
	tests := []struct {
		fields  []string
		options plan.TextOptions
		want    string
	}{
		{[]string{"spec.size", "status.conditions[Ready]", "status.pages", "status.size"}, plan.TextOptions{},
			"+ spec.size: \"x\"\n        + status.conditions[Ready]: \"x\"\n        … and 2 fields of the status\n"},
		{[]string{"status.pages"}, plan.TextOptions{}, "        … and a field of the status\n"},
		{[]string{"statusquo"}, plan.TextOptions{}, "        + statusquo: \"x\"\n"},
		{[]string{"status.pages", "status.size"}, plan.TextOptions{MaxValue: -1}, "        + status.pages: \"x\"\n        + status.size: \"x\"\n"},
	}
	for _, tt := range tests {
		var b strings.Builder
		if err := plan.WriteText(&b, reported(tt.fields...), tt.options); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), tt.want) {
			t.Errorf("%q:\n%s", tt.fields, &b)
		}
	}
}

func TestTextOfPlans(t *testing.T) {
	create := plan.Change{Action: plan.Create, Object: plan.Object{Kind: "ConfigMap", Name: "a"}}
	failed := &plan.Plan{Object: plan.Object{Name: "x"}, Event: plan.DeleteEvent, Outcome: plan.Failed, Reason: "no"}
	ignored := &plan.Plan{Object: plan.Object{Name: "y"}, Event: plan.UpdateEvent, Outcome: plan.Ignored, Reason: "it is paused"}
	canceled := &plan.Plan{Object: plan.Object{Name: "z"}, Event: plan.UpdateEvent, Outcome: plan.Canceled, Reason: "by pages"}
	for name, tc := range map[string]struct {
		plans []*plan.Plan
		want  string
	}{
		"none": {nil, "0 to create, 0 to update, 0 to delete\n"},
		"one without changes": {
			[]*plan.Plan{simple("home")},
			"Website default/home (update)\n  pages: nothing to do\n\n0 to create, 0 to update, 0 to delete\n",
		},
		"one without resources": {
			[]*plan.Plan{{Object: plan.Object{Name: "x"}, Event: plan.UpdateEvent, Outcome: plan.Planned}},
			"x (update)\n  nothing to do\n\n0 to create, 0 to update, 0 to delete\n",
		},
		"those without changes are counted": {
			[]*plan.Plan{simple("a"), simple("b", create), simple("c")},
			"Website default/b (update)\n  pages\n    + ConfigMap a\n\n2 of 3 objects need no change\n\n1 to create, 0 to update, 0 to delete\n",
		},
		"those that failed, were cancelled or left alone are shown": {
			[]*plan.Plan{failed, ignored, canceled},
			"x (delete)\n  failed: no\n\ny (update)\n  left alone: it is paused\n\nz (update)\n  cancelled: by pages\n\n0 to create, 0 to update, 0 to delete\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, text(t, tc.plans, plan.TextOptions{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A cluster holds what others wrote into it. It must not be able to write on the terminal of who looks at it.
func TestNoValueDrivesTheTerminal(t *testing.T) {
	hostile := "a\x1b[2J\x1b]0;x\a\u009b31m\u202egnp\u2028\r\b\x7f\xff\U000e0001"
	p := &plan.Plan{
		Framework: hostile, ResourceSet: hostile, Event: plan.Event(hostile), Outcome: plan.Failed, Reason: hostile,
		Object: plan.Object{Kind: hostile, Namespace: hostile, Name: hostile},
		Resources: []plan.Resource{{
			Name: hostile, Skipped: hostile, Error: hostile,
			Changes: []plan.Change{{
				Action: plan.Update, Object: plan.Object{Kind: hostile, Name: hostile}, Description: hostile,
				Fields: []plan.FieldChange{
					{Path: hostile, Old: hostile, New: hostile + "x"},
					{Path: hostile, Old: "1\n" + hostile, New: hostile + "\n2"},
					{Path: hostile, New: map[string]any{hostile: []any{hostile}}},
					{Path: hostile, Old: hostile, Sensitive: true},
				},
			}},
		}},
	}
	for name, shown := range map[string]string{
		"text":       text(t, []*plan.Plan{p}, plan.TextOptions{}),
		"difference": plan.Difference(p, simple("home")),
	} {
		for _, r := range shown {
			if r != '\n' && (r < ' ' || r == '\x7f' || r >= 0x80 && r < 0xa0 || r == '\u202e' || r == '\u2028' || r > 0xffff) {
				t.Errorf("%s holds %q:\n%q", name, r, shown)
				break
			}
		}
		if !strings.Contains(shown, `\u001b[2J`) {
			t.Errorf("%s does not show what is there:\n%s", name, shown)
		}
	}
}

func TestColourIsWantedOnTerminalsOnly(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if plan.ColorWanted(file) || plan.ColorWanted(&bytes.Buffer{}) {
		t.Error("colours are wanted in a file or a buffer")
	}
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no pseudo-terminal can be had here: %v", err)
	}
	defer func() { _ = terminal.Close() }()
	for name, tc := range map[string]struct {
		noColor, term string
		want          bool
	}{
		"plain":       {"", "xterm", true},
		"NO_COLOR":    {"1", "xterm", false},
		"a dumb one":  {"", "dumb", false},
		"an old name": {"", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("NO_COLOR", tc.noColor)
			t.Setenv("TERM", tc.term)
			if got := plan.ColorWanted(terminal); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// full is a writer to which nothing can be written.
type full struct{}

var errFull = errors.New("full")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestErrorsOfTheWriterAreReturned(t *testing.T) {
	if err := plan.WriteText(full{}, nil, plan.TextOptions{}); !errors.Is(err, errFull) {
		t.Errorf("text: %v", err)
	}
	if err := plan.WriteJSON(full{}, nil); !errors.Is(err, errFull) {
		t.Errorf("JSON: %v", err)
	}
}
