package framework

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// adviceOn is access.Advice.
func adviceOn(err error) string {
	var advice []string
	for status := range statusesOf(err) {
		for _, text := range []string{lackingRule(status), heldFields(status)} {
			if text != "" && !slices.Contains(advice, text) {
				advice = append(advice, text)
			}
		}
	}
	return strings.Join(advice, "; ")
}

// advisedError is an error with its advice.
type advisedError struct {
	error
	advice string
}

func (e *advisedError) Error() string { return e.error.Error() + ": " + e.advice }

func (e *advisedError) Unwrap() error { return e.error }

// advised returns an error with its advice, if there is any. Every error that ends a reconciliation
// passes here, also errors of sources.
func advised(err error) error {
	if err == nil {
		return nil
	}
	var already *advisedError
	if errors.As(err, &already) {
		return err
	}
	if advice := adviceOn(err); advice != "" {
		return &advisedError{err, advice}
	}
	return err
}

// unauthorized matches the message with which the authorizer of the API server refuses a request.
var unauthorized = regexp.MustCompile(
	`User "([^"]*)" cannot ([a-z]+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]*)")?`)

// lackingRule names the rule that would allow a request that is forbidden for lack of rights. Other
// reasons, such as a quota, have none.
func lackingRule(status metav1.Status) string {
	said := unauthorized.FindStringSubmatch(status.Message)
	if status.Reason != metav1.StatusReasonForbidden || said == nil {
		return ""
	}
	role := "a ClusterRole"
	if namespace := said[5]; namespace != "" {
		role = fmt.Sprintf("a Role in namespace %q, or a ClusterRole,", namespace)
	}
	return fmt.Sprintf("bind %s to %q with the rule {apiGroups: [%q], resources: [%q], verbs: [%q]}",
		role, said[1], said[4], said[3], said[2])
}

// heldFields names the managers of the fields that a server-side apply sets.
func heldFields(status metav1.Status) string {
	if status.Details == nil {
		return ""
	}
	var held []string
	for _, cause := range status.Details.Causes {
		if cause.Type == metav1.CauseTypeFieldManagerConflict {
			manager := strings.TrimPrefix(cause.Message, "conflict with ")
			held = append(held, strings.TrimPrefix(cause.Field, ".")+" is held by "+manager)
		}
	}
	if len(held) == 0 {
		return ""
	}
	return strings.Join(held, ", ") +
		": leave the field to that manager, have it give it up, or take it over with client.ForceOwnership"
}

// statusesOf calls yield with each API server status in the tree of an error.
func statusesOf(err error) func(yield func(metav1.Status) bool) {
	return func(yield func(metav1.Status) bool) {
		for each := range tree(err) {
			if answer, ok := each.(apierrors.APIStatus); ok && !yield(answer.Status()) {
				return
			}
		}
	}
}
