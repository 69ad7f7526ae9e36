package serviceset

import (
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrNoOwner is the error for services that belong to neither a ClusterDeployment nor a MultiClusterService.
var ErrNoOwner = errors.New("services need an owner: give a ClusterDeployment, a MultiClusterService, or both")

// GraphError says that the dependencies between the services of an owner contradict each other. Nothing can be resolved
// before they are mended. It names every one.
type GraphError struct {
	// Absent are dependencies on services that the owner does not list, also because they were removed.
	Absent []AbsentDependency
	// Cycles are services that depend on each other.
	Cycles []Cycle
}

// AbsentDependency is a service that depends on one that is not there.
type AbsentDependency struct {
	Service, DependsOn client.ObjectKey
	// Installed says that the absent service is still on the cluster: it was removed from the list.
	Installed bool
}

// Cycle is services that depend on each other.
type Cycle struct {
	// Services are all of them, by key.
	Services []client.ObjectKey
	// Path is a shortest cycle: each service depends on the next one, the last is the first.
	Path []client.ObjectKey
}

// Error implements error.
func (e *GraphError) Error() string {
	var parts []string
	for _, a := range e.Absent {
		why := "which is not listed: list it"
		if a.Installed {
			why = "which was removed from the list: put it back"
		}
		parts = append(parts, fmt.Sprintf("service %s depends on %s, %s or take it out of dependsOn", a.Service, a.DependsOn, why))
	}
	for _, c := range e.Cycles {
		parts = append(parts, c.String()+": take one of these dependencies out")
	}
	return strings.Join(parts, "; ")
}

// String says in words who depends on whom.
func (c Cycle) String() string {
	text := "services depend on each other: " + joinKeys(c.Path, " → ")
	if len(c.Services) >= len(c.Path) {
		text += " (all that do: " + joinKeys(c.Services, ", ") + ")"
	}
	return text
}

// MissingError says that objects which services name do not exist. It names every one.
type MissingError struct {
	// Namespace is where they were looked for.
	Namespace string
	// Missing are the objects, by kind and name.
	Missing []MissingObject
}

// MissingObject is an object that does not exist, and a service that names it.
type MissingObject struct {
	Kind, Name string // Name is empty where the service names none
	Service    client.ObjectKey
	// Reason says what is wrong where the object exists, but does not fit.
	Reason string
}

// Error implements error.
func (e *MissingError) Error() string {
	parts := make([]string, len(e.Missing))
	for i, m := range e.Missing {
		reason := m.Reason
		if reason == "" {
			reason = "does not exist: create it"
		}
		if m.Name == "" {
			parts[i] = fmt.Sprintf("service %s names no %s: %s", m.Service, m.Kind, reason)
			continue
		}
		parts[i] = fmt.Sprintf("%s %s/%s of service %s %s", m.Kind, e.Namespace, m.Name, m.Service, reason)
	}
	return strings.Join(parts, "; ")
}

func joinKeys(keys []client.ObjectKey, separator string) string {
	var b strings.Builder
	for i, k := range keys {
		if i > 0 {
			b.WriteString(separator)
		}
		b.WriteString(k.String())
	}
	return b.String()
}
