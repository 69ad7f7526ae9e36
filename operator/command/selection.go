package command

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
)

// selection says which objects a command is about.
type selection struct {
	// first is KIND, or NAME if it is the only argument.
	first, second string
	// namespaces are those of the objects; none are all that the operator looks at.
	namespaces    []string
	allNamespaces bool
}

// take takes in the arguments KIND, NAME, KIND NAME or KIND/NAME.
func (s *selection) take(args []string) error {
	switch len(args) {
	case 2:
		s.first, s.second = args[0], args[1]
	case 1:
		s.first = args[0]
		if kind, name, ok := strings.Cut(args[0], "/"); ok {
			s.first, s.second = kind, name
		}
	}
	return nil
}

// resolve returns the frameworks that are meant, and the name of an object, which is empty for all.
func (s *selection) resolve(frameworks []*framework.Framework, config Config) ([]*framework.Framework, string, error) {
	if s.first == "" {
		return frameworks, "", nil
	}
	var named []*framework.Framework
	kind := config.kindNamed(s.first)
	for _, f := range frameworks {
		if slices.ContainsFunc(namesOf(f), func(name string) bool { return strings.EqualFold(name, kind) || strings.EqualFold(name, s.first) }) {
			named = append(named, f)
		}
	}
	switch {
	case len(named) == 1:
		return named, s.second, nil
	case len(named) > 1:
		return nil, "", &usageError{fmt.Errorf("%q may be any of the frameworks %s: give its name as KIND", s.first, list(named))}
	case len(frameworks) == 1 && s.second == "":
		return frameworks, s.first, nil
	}
	return nil, "", &usageError{fmt.Errorf("%q is no KIND of this operator: its frameworks are %s", s.first, list(frameworks))}
}

// namesOf returns the names by which people call a framework: its own, that of its source, and of a source of
// Kubernetes objects the kind and the resource, with and without the group.
func namesOf(f *framework.Framework) []string {
	source := f.Sources()[0]
	resource, _, _ := strings.Cut(source.Name(), " ")
	names := []string{f.Name(), source.Name(), resource}
	k, ok := source.(interface {
		GroupVersionKind() schema.GroupVersionKind
	})
	if ok {
		kind := k.GroupVersionKind().GroupKind()
		resource, _, _ = strings.Cut(resource, ".")
		names = append(names, kind.Kind, kind.String(), resource)
	}
	return names
}

func list(frameworks []*framework.Framework) string {
	var names []string
	for _, f := range frameworks {
		names = append(names, fmt.Sprintf("%q", f.Name()))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// selected returns the objects that a selection names, in the order of the frameworks and then of their keys.
func (r *reading) selected(s selection) ([]subject, error) {
	frameworks, name, err := s.resolve(r.frameworks, r.program.config)
	if err != nil {
		return nil, err
	}
	switch {
	case s.allNamespaces:
		s.namespaces = nil
	case len(s.namespaces) == 0:
		s.namespaces = []string{r.connection.namespace}
	}
	if name != "" {
		one, err := s.named(frameworks[0], name)
		return []subject{one}, err
	}
	var subjects []subject
	for _, f := range frameworks {
		for _, key := range s.keys(f.Sources()[0]) {
			subjects = append(subjects, subject{framework: f, key: key})
		}
	}
	return subjects, nil
}

// named returns one object. It is found without a namespace too, as kubectl does it.
func (s *selection) named(f *framework.Framework, name string) (subject, error) {
	source := f.Sources()[0]
	keys := slices.DeleteFunc(s.keys(source), func(key informer.Key) bool { return key.Name != name })
	switch len(keys) {
	case 0:
		return subject{}, fmt.Errorf("source %q of framework %q holds no %q in %s: is the --namespace right?",
			source.Name(), f.Name(), name, s.where())
	case 1:
		return subject{framework: f, key: keys[0]}, nil
	}
	var namespaces []string
	for _, key := range keys {
		namespaces = append(namespaces, key.Namespace)
	}
	slices.Sort(namespaces)
	return subject{}, fmt.Errorf("source %q of framework %q holds a %q in each of the namespaces %s: say with --namespace which one is meant",
		source.Name(), f.Name(), name, strings.Join(namespaces, ", "))
}

// where names the namespaces of the objects, for errors.
func (s *selection) where() string {
	switch len(s.namespaces) {
	case 0:
		return "any namespace"
	case 1:
		return fmt.Sprintf("namespace %q", s.namespaces[0])
	}
	return fmt.Sprintf("the namespaces %q", s.namespaces)
}

// keys returns the keys of the selected objects of a source, sorted. Those without a namespace are always selected.
func (s *selection) keys(source informer.Source) []informer.Key {
	var keys []informer.Key
	unsubscribe := source.Subscribe(func(e informer.Event) {
		selected := len(s.namespaces) == 0 || e.Key.Namespace == "" || slices.Contains(s.namespaces, e.Key.Namespace)
		if e.Type == informer.Added && e.Backlog && selected {
			keys = append(keys, e.Key)
		}
	})
	unsubscribe()
	slices.SortFunc(keys, func(a, b informer.Key) int { return strings.Compare(a.String(), b.String()) })
	return keys
}
