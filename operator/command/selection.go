package command

import (
	"errors"
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
	namespace     string
	allNamespaces bool
}

// take takes in the arguments KIND, NAME, KIND NAME or KIND/NAME.
func (s *selection) take(args []string) error {
	if s.allNamespaces && s.namespace != "" {
		return &usageError{errors.New("give either --namespace or --all-namespaces")}
	}
	switch len(args) {
	case 2:
		s.first, s.second = args[0], args[1]
	case 1:
		s.first = args[0]
		if kind, name, ok := strings.Cut(args[0], "/"); ok {
			s.first, s.second = kind, name
		}
	}
	if s.second != "" && s.allNamespaces {
		return &usageError{errors.New("an object has one namespace: give --namespace instead of --all-namespaces")}
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
	case len(frameworks) == 1 && s.second == "" && !s.allNamespaces:
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
	if s.namespace == "" {
		s.namespace = r.connection.namespace
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
	for _, namespace := range []string{s.namespace, ""} {
		key := informer.Key{Namespace: namespace, Name: name}
		if _, exists, _ := source.Get(key); exists {
			return subject{framework: f, key: key}, nil
		}
	}
	return subject{}, fmt.Errorf("source %q of framework %q holds no %q in namespace %q: is the --namespace right?",
		source.Name(), f.Name(), name, s.namespace)
}

// keys returns the keys of the selected objects of a source, sorted. Those without a namespace are always selected.
func (s *selection) keys(source informer.Source) []informer.Key {
	var keys []informer.Key
	unsubscribe := source.Subscribe(func(e informer.Event) {
		selected := s.allNamespaces || e.Key.Namespace == "" || e.Key.Namespace == s.namespace
		if e.Type == informer.Added && e.Backlog && selected {
			keys = append(keys, e.Key)
		}
	})
	unsubscribe()
	slices.SortFunc(keys, func(a, b informer.Key) int { return strings.Compare(a.String(), b.String()) })
	return keys
}
