package guards

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
)

// entry is a guard in a file.
type entry struct {
	Name       string `yaml:"name"`
	Match      string `yaml:"match"`
	Predefined string `yaml:"predefined"`
	Action     string `yaml:"action"`
	Message    string `yaml:"message"`
	Limit      *limit `yaml:"limit"`
	// Unknown are the fields that do not exist.
	Unknown map[string]any `yaml:",inline"`
}

type limit struct {
	Max     int            `yaml:"max"`
	Percent int            `yaml:"percent"`
	Per     string         `yaml:"per"`
	Unknown map[string]any `yaml:",inline"`
}

// predefined are the expressions of the ready-made guards.
var predefined = map[string]string{
	"deletion-of-claims":               "change.action == 'delete' && change.kind == 'PersistentVolumeClaim'",
	"deletion-of-namespaces":           "change.action == 'delete' && change.kind == 'Namespace' && change.apiVersion in ['', 'v1']",
	"deletion-of-definitions":          "change.action == 'delete' && change.kind == 'CustomResourceDefinition'",
	"replacement-of-immutable-objects": "change.replaces",
	massDeletion:                       "change.action == 'delete'",
}

// massDeletion has a limit of its own.
const massDeletion = "mass-deletion"

const (
	massPercent = 10
	massPer     = "1h"
)

// Read reads the guards of a file. The error names the line and the guard, and says what to do.
// Namespaces reads the namespaces that expressions ask for, without a cache; if it is nil, such an
// expression can't be evaluated.
func Read(file []byte, namespaces client.Reader) ([]framework.Guard, error) {
	var document struct {
		Guards *[]yaml.Node `yaml:"guards"`
	}
	decoder := yaml.NewDecoder(bytes.NewReader(file))
	decoder.KnownFields(true)
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: the file has one list, guards", err)
	}
	if document.Guards == nil {
		return nil, errors.New("there are no guards: the file has one list, guards; to have none, write guards: []")
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is a second document: put all guards into one list")
	}
	compiler, err := newCompiler(namespaces)
	if err != nil {
		return nil, err
	}
	var guards []framework.Guard
	lines := map[string]int{}
	for _, node := range *document.Guards {
		guard, err := compiler.guard(node)
		if err != nil {
			return nil, err
		}
		if line, taken := lines[guard.Name]; taken {
			return nil, fmt.Errorf("line %d: guard %q has the name of the one in line %d: rename it", node.Line, guard.Name, line)
		}
		lines[guard.Name] = node.Line
		guards = append(guards, guard)
	}
	return guards, nil
}

// fields are those of an entry, for an error.
const fields = "it has name, match or predefined, action or limit (max or percent, per), and message"

// guard reads one guard.
func (c *compiler) guard(node yaml.Node) (guard framework.Guard, err error) {
	var e entry
	unreadable := node.Decode(&e)
	e.Name = cmp.Or(e.Name, e.Predefined)
	fault := func(format string, args ...any) (framework.Guard, error) {
		return framework.Guard{}, fmt.Errorf("line %d: guard %q: %w", node.Line, e.Name, fmt.Errorf(format, args...))
	}
	if e.Predefined == massDeletion && e.Action == "" {
		e.Limit = cmp.Or(e.Limit, &limit{Percent: massPercent})
		e.Limit.Per = cmp.Or(e.Limit.Per, massPer)
	}
	unknown := e.Unknown
	if e.Limit != nil && len(unknown) == 0 {
		unknown = e.Limit.Unknown
	}
	ready, isReady := predefined[e.Predefined]
	expression := cmp.Or(e.Match, ready)
	guard = framework.Guard{Name: e.Name, Action: framework.GuardAction(e.Action), Message: e.Message}
	actions := []framework.GuardAction{framework.GuardDeny, framework.GuardApprove, framework.GuardWarn}
	switch {
	case unreadable != nil:
		return fault("%w: "+fields, unreadable)
	case len(unknown) > 0:
		return fault("field %s not found: "+fields, strings.Join(slices.Sorted(maps.Keys(unknown)), ", "))
	case e.Predefined != "" && !isReady:
		return fault("there is no predefined guard %q: it is one of %s", e.Predefined, strings.Join(slices.Sorted(maps.Keys(predefined)), ", "))
	case isReady && e.Match != "":
		return fault("it has both predefined and match: leave one out")
	case e.Name == "":
		return fault("it has no name: give it one")
	case strings.Contains(e.Name, "/"):
		return fault("its name must have no slash")
	case expression == "":
		return fault("it has neither match nor predefined: say what it is about")
	case e.Limit != nil && e.Action != "":
		return fault("it has both an action and a limit: make two guards")
	case e.Limit == nil && !slices.Contains(actions, guard.Action):
		return fault("its action must be deny, approve or warn, or it must have a limit; its action is %q", e.Action)
	}
	if l := e.Limit; l != nil {
		per, err := time.ParseDuration(l.Per)
		if err != nil {
			return fault("limit: per %q is no time: write it as 10m or 1h", l.Per)
		}
		guard.Limit = &framework.GuardLimit{Max: l.Max, Percent: l.Percent, Per: per}
		if err := guard.Limit.Validate(); err != nil {
			return fault("limit: it must have %w", err)
		}
	}
	if guard.Match, guard.Rights, err = c.compile(expression); err != nil {
		return fault("match: %w", err)
	}
	return guard, nil
}
