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
}

type limit struct {
	Max     int    `yaml:"max"`
	Percent int    `yaml:"percent"`
	Per     string `yaml:"per"`
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

// guard reads one guard.
func (c *compiler) guard(node yaml.Node) (guard framework.Guard, err error) {
	e, err := decode(node)
	if err != nil {
		return guard, err
	}
	fault := func(format string, args ...any) (framework.Guard, error) {
		return framework.Guard{}, fmt.Errorf("line %d: guard %q: %w", node.Line, e.Name, fmt.Errorf(format, args...))
	}
	expression := e.Match
	if e.Predefined != "" {
		known := false
		if expression, known = predefined[e.Predefined]; !known {
			return fault("there is no predefined guard %q: it is one of %s", e.Predefined, strings.Join(slices.Sorted(maps.Keys(predefined)), ", "))
		}
		if e.Match != "" {
			return fault("it has both predefined and match: leave one out")
		}
		e.Name = cmp.Or(e.Name, e.Predefined)
		if e.Predefined == massDeletion && e.Action == "" {
			e.Limit = cmp.Or(e.Limit, &limit{Percent: massPercent})
			e.Limit.Per = cmp.Or(e.Limit.Per, massPer)
		}
	}
	guard = framework.Guard{Name: e.Name, Action: framework.GuardAction(e.Action), Message: e.Message}
	switch known := []framework.GuardAction{framework.GuardDeny, framework.GuardApprove, framework.GuardWarn}; {
	case e.Name == "":
		return fault("it has no name: give it one")
	case strings.Contains(e.Name, "/"):
		return fault("its name must have no slash")
	case expression == "":
		return fault("it has neither match nor predefined: say what it is about")
	case e.Limit != nil && e.Action != "":
		return fault("it has both an action and a limit: make two guards")
	case e.Limit == nil && !slices.Contains(known, guard.Action):
		return fault("its action must be deny, approve or warn, or it must have a limit; its action is %q", e.Action)
	}
	if e.Limit != nil {
		if guard.Limit, err = e.Limit.read(); err != nil {
			return fault("limit: %w", err)
		}
	}
	if guard.Match, guard.Rights, err = c.compile(expression); err != nil {
		return fault("match: %w", err)
	}
	return guard, nil
}

// decode reads an entry, which has no unknown fields.
func decode(node yaml.Node) (e entry, err error) {
	text, err := yaml.Marshal(&node)
	if err != nil {
		return e, fmt.Errorf("line %d: %w", node.Line, err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&e); err != nil {
		var fault *yaml.TypeError
		if errors.As(err, &fault) {
			err = errors.New(strings.Join(withoutLines(fault.Errors), "; "))
		}
		_ = node.Decode(&e) // for the name
		return e, fmt.Errorf("line %d: guard %q: %w: it has name, match or predefined, action or limit (max or percent, per), and message",
			node.Line, cmp.Or(e.Name, e.Predefined), err)
	}
	return e, nil
}

// withoutLines removes the numbers of lines, which are those of the entry and not of the file.
func withoutLines(faults []string) []string {
	var texts []string
	for _, fault := range faults {
		_, text, _ := strings.Cut(fault, ": ")
		texts = append(texts, strings.NewReplacer(" in type guards.entry", "", " in type guards.limit", "").Replace(text))
	}
	return texts
}

func (l *limit) read() (*framework.GuardLimit, error) {
	per, err := time.ParseDuration(l.Per)
	switch {
	case err != nil:
		return nil, fmt.Errorf("per %q is no time: write it as 10m or 1h", l.Per)
	case per < time.Second || per%time.Second != 0:
		return nil, fmt.Errorf("per must be whole seconds, is %s", l.Per)
	case (l.Max == 0) == (l.Percent == 0):
		return nil, errors.New("it must have either max or percent")
	case l.Max < 0 || l.Max > framework.MaxGuardLimit:
		return nil, fmt.Errorf("max must be from 1 to %d, is %d", framework.MaxGuardLimit, l.Max)
	case l.Percent < 0 || l.Percent > 100:
		return nil, fmt.Errorf("percent must be from 1 to 100, is %d", l.Percent)
	}
	return &framework.GuardLimit{Max: l.Max, Percent: l.Percent, Per: per}, nil
}
