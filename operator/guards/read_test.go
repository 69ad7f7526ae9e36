package guards_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/guards"
)

func TestAFileOfGuardsIsRead(t *testing.T) {
	file, err := os.ReadFile("testdata/guards.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file = append(file, "- predefined: mass-deletion\n  name: half\n  limit: {percent: 50}\n"...)
	read, err := guards.Read(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	type shown struct {
		Name, Action, Message string
		Limit                 framework.GuardLimit
	}
	var got []shown
	for _, g := range read {
		s := shown{Name: g.Name, Action: string(g.Action), Message: g.Message}
		if g.Limit != nil {
			s.Limit = *g.Limit
		}
		got = append(got, s)
	}
	want := []shown{
		{Name: "keep-releases-in-prod", Action: "deny", Message: "Ask the owners of prod first."},
		{Name: "few-claims", Limit: framework.GuardLimit{Max: 5, Per: 10 * time.Minute}},
		{Name: "deletion-of-namespaces", Action: "approve"},
		{Name: "mass-deletion", Limit: framework.GuardLimit{Percent: 10, Per: time.Hour}},
		{Name: "half", Limit: framework.GuardLimit{Percent: 50, Per: time.Hour}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAFileThatCannotBeReadSaysWhereAndWhatToDo(t *testing.T) {
	for file, wants := range map[string][]string{
		"":                                   {"there are no guards", "guards: []"},
		"guard: []":                          {"field guard not found", "one list, guards"},
		"guards: [":                          {"line 1"},
		"guards: []\n---\nguards: []":        {"second document"},
		"guards:\n- name: a\n  action: deny": {`line 2: guard "a"`, "neither match nor predefined"},
		"guards:\n- match: 'true'\n  action: deny":                                                    {"line 2", "it has no name"},
		"guards:\n- name: a\n  match: 'true'":                                                         {`guard "a"`, "its action must be deny, approve or warn", "or it must have a limit"},
		"guards:\n- name: a\n  match: 'true'\n  action: refuse":                                       {`its action is "refuse"`},
		"guards:\n- name: a\n  match: 'true'\n  acton: deny":                                          {`guard "a"`, "field acton not found", "it has name, match or predefined"},
		"guards:\n- name: a\n  match: 'true'\n  action: deny\n  limit: {max: 1, per: 1m}":             {"both an action and a limit"},
		"guards:\n- name: a\n  match: 'true'\n  limit: {max: 1, per: soon}":                           {`per "soon" is no time`},
		"guards:\n- name: a\n  match: 'true'\n  limit: {max: 1, per: 1ms}":                            {"whole seconds"},
		"guards:\n- name: a\n  match: 'true'\n  limit: {per: 1m}":                                     {"either max or percent"},
		"guards:\n- name: a\n  match: 'true'\n  limit: {max: 1, percent: 1, per: 1m}":                 {"either max or percent"},
		"guards:\n- name: a\n  match: 'true'\n  limit: {max: 1001, per: 1m}":                          {"from 1 to 1000"},
		"guards:\n- name: a\n  match: 'true'\n  limit: {percent: 101, per: 1m}":                       {"from 1 to 100"},
		"guards:\n- name: a\n  match: 'true'\n  limit: {most: 1, per: 1m}":                            {"field most not found"},
		"guards:\n- predefined: deletion-of-all\n  action: deny":                                      {`no predefined guard "deletion-of-all"`, "mass-deletion"},
		"guards:\n- predefined: mass-deletion\n  match: 'true'":                                       {"both predefined and match"},
		"guards:\n- predefined: deletion-of-claims":                                                   {"its action must be"},
		"guards:\n- {name: a, match: 'true', action: deny}\n- {name: a, match: 'true', action: warn}": {`line 3: guard "a" has the name of the one in line 2`},
	} {
		_, err := guards.Read([]byte(file), nil)
		if err == nil {
			t.Errorf("%s\nwas read", file)
			continue
		}
		for _, want := range wants {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s\nis refused with %q, want %q", file, err, want)
			}
		}
	}
}

func TestReadyMadeGuardsMatchWhatTheirNamesSay(t *testing.T) {
	definition := deletion("CustomResourceDefinition", "")
	definition.Change.Object.APIVersion = "apiextensions.k8s.io/v1"
	replaced, foreign := input(), deletion("Namespace", "")
	replaced.Change.Description = plan.Replaced + "it can't be changed"
	foreign.Change.Object.APIVersion = "example.com/v1"
	created := deletion("PersistentVolumeClaim", "shop")
	created.Change.Action = plan.Create
	all := map[string]framework.GuardInput{
		"claim": deletion("PersistentVolumeClaim", "shop"), "namespace": deletion("Namespace", ""), "definition": definition,
		"replaced": replaced, "foreign": foreign, "created": created, "updated": input(),
	}
	for name, matched := range map[string]string{
		"deletion-of-claims": "claim", "deletion-of-namespaces": "namespace", "deletion-of-definitions": "definition",
		"replacement-of-immutable-objects": "replaced", "mass-deletion": "claim namespace definition foreign",
	} {
		read, err := guards.Read([]byte("guards:\n- predefined: "+name+"\n  action: deny\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		for kind, in := range all {
			matches, err := read[0].Match(t.Context(), in)
			if want := strings.Contains(" "+matched+" ", " "+kind+" "); matches != want || err != nil {
				t.Errorf("%s of %s: %t, %v, want %t", name, kind, matches, err, want)
			}
		}
	}
}
