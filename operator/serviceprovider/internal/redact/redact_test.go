package redact_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/operator/serviceprovider/internal/redact"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

func TestOfErrorsOfClientsOnlyTheKindIsTold(t *testing.T) {
	var (
		dial      = &url.Error{Op: "Get", URL: "https://api.platform.example:6443/api", Err: &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("10.1.2.3:6443 refused")}}
		forbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "admin", errors.New("User system:serviceaccount:platform-access:x can't get it in namespace platform"))
		hidden    = &target.UnreachableError{Cluster: target.Key{Namespace: "platform", Name: "admin"}, State: target.Unreachable, Cause: dial}
	)
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"an author's own words":      {errors.New("version 99 is not offered"), "version 99 is not offered"},
		"an API server's answer":     {fmt.Errorf("apply: %w", forbidden), "apply: the API server answered Forbidden"},
		"no answer":                  {fmt.Errorf("apply: %w", dial), "apply: no answer"},
		"a cluster that is known to": {fmt.Errorf("apply: %w", hidden), "apply: no answer"},
		"a step":                     {redact.Wrap(forbidden, "ask for access"), "ask for access: the API server answered Forbidden (the log of the operator says more)"},
		"a step in a step": {
			redact.Wrap(redact.Wrap(errors.New("namespace platform is gone"), "read it"), "ask"), "ask: it failed (the log of the operator says more)",
		},
		"a step that took too long": {redact.Wrap(context.DeadlineExceeded, "ask"), "ask: it took too long (the log of the operator says more)"},
		"several":                   {errors.Join(fmt.Errorf("a: %w", dial), fmt.Errorf("b: %w", forbidden), errors.New("c")), "a: no answer\nb: the API server answered Forbidden\nc"},
		"twice the same":            {fmt.Errorf("%w, again %w", dial, dial), "no answer, again no answer"},
		"only its text":             {errors.New("apply: " + dial.Error()), `apply: Get "(address)": dial tcp: (address) refused`},
		"other words around it":     {reworded{forbidden}, "the API server answered Forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := redact.Text(c.err); got != c.want {
				t.Errorf("it tells %q, want %q", got, c.want)
			}
			if strings.Contains(redact.Text(c.err), "platform") {
				t.Errorf("it tells names of the platform: %s", redact.Text(c.err))
			}
		})
	}
	if redact.Text(nil) != "" {
		t.Error("no error has a text")
	}
	if err := redact.Wrap(forbidden, "ask"); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "platform-access") {
		t.Errorf("those who run the platform are told too little: %v", err)
	}
}

// reworded is an error in other words than what it wraps.
type reworded struct{ error }

func (r reworded) Error() string { return "the account of the platform may not" }
func (r reworded) Unwrap() error { return r.error }
