package native_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// states are the states of a set, by name.
func states(set *v1alpha1.ServiceSet) string {
	var all []string
	for _, s := range set.Status.Services {
		all = append(all, s.Name+" "+string(s.State))
	}
	return strings.Join(all, ", ")
}

func failures(set *v1alpha1.ServiceSet) string {
	var all []string
	for _, s := range set.Status.Services {
		if s.FailureMessage != "" {
			all = append(all, s.Name+": "+s.FailureMessage)
		}
		for _, c := range s.Conditions {
			all = append(all, s.Name+" "+c.Type+"="+string(c.Status)+": "+c.Message)
		}
	}
	return strings.Join(all, "; ")
}

// stateOf returns what the status of a set says of a service.
func (w *world) stateOf(set, service string) v1alpha1.ServiceState {
	w.t.Helper()
	for _, s := range w.get(set).Status.Services {
		if s.Name == service {
			return s
		}
	}
	w.t.Fatalf("the status of %s says nothing of %s: %s", set, service, states(w.get(set)))
	return v1alpha1.ServiceState{}
}

// condition returns a condition of a service, empty if it has none.
func (w *world) condition(set, service, condition string) metav1.Condition {
	w.t.Helper()
	s := w.stateOf(set, service)
	if c := meta.FindStatusCondition(s.Conditions, condition); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// says checks that a text has all parts in it.
func says(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("nothing is said of %q in: %s", part, text)
		}
	}
}
