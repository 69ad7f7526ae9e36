package statemanagerresource_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
)

func TestTheCheckNamesAllThatIsToBeMended(t *testing.T) {
	missing := framework.Permanent(errors.New("ServiceTemplate platform/x does not exist: create it"))
	invalid := framework.Permanent(errors.New("the values are no YAML"))
	away := errors.New("registry does not answer")
	faulty := func(name string, err error) operation { return operation{Service: serviceKey(name), Err: err} }
	for name, c := range map[string]struct {
		operations []operation
		fails      error
		permanent  bool
		want       []string
	}{
		"nothing":                    {},
		"nothing but work":           {operations: []operation{creates("a"), {Notes: []string{"waits"}}}},
		"one to mend":                {operations: []operation{creates("b"), faulty("a", missing)}, permanent: true, want: []string{"service apps/a: ServiceTemplate"}},
		"two to mend":                {operations: []operation{faulty("a", missing), faulty("b", invalid)}, permanent: true, want: []string{"service apps/a: ", "service apps/b: "}},
		"one that passes":            {operations: []operation{faulty("a", away)}, want: []string{"service apps/a: registry"}},
		"one passes, one is to mend": {operations: []operation{faulty("a", missing), faulty("b", away)}, want: []string{"service apps/a: ", "service apps/b: "}},
		"one is to mend, one passes": {operations: []operation{faulty("a", away), faulty("b", missing)}, want: []string{"service apps/a: ", "service apps/b: "}},
		"a failure to read":          {fails: errors.New("no route to host"), want: []string{"no route to host"}},
		"a failure that stays":       {fails: framework.Permanent(errors.New("no such provider")), permanent: true, want: []string{"no such provider"}},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t, c.operations...)
			k.fails = c.fails
			check := k.resources[1]
			for event, ensure := range map[string]func(context.Context, any) error{"update": check.EnsureCreated, "delete": check.EnsureDeleted} {
				err := ensure(t.Context(), prod())
				if (err != nil) != (len(c.want) > 0) || framework.IsPermanent(err) != c.permanent {
					t.Errorf("%s: error = %v, permanent: %v", event, err, framework.IsPermanent(err))
				}
				for _, part := range c.want {
					if !strings.Contains(fmt.Sprint(err), part) {
						t.Errorf("%s: error = %v, want %q in it", event, err, part)
					}
				}
				for _, o := range c.operations {
					if o.Err != nil && !framework.IsPermanent(o.Err) && !errors.Is(err, o.Err) {
						t.Errorf("%s: error = %v, and errors.Is does not find %v", event, err, o.Err)
					}
				}
			}
			k.wantDone()
		})
	}
}

// Plan and reconciliation fail in the same place, after all that can be done.
func TestWhatCanBeDoneIsDoneBeforeTheCheckFails(t *testing.T) {
	cause := framework.Permanent(errors.New("the values are no YAML"))
	k := newKit(t, operation{Service: serviceKey("bad"), Err: cause}, creates("good"))
	p, err := framework.PlanUpdate(t.Context(), prod(), k.resources)
	if err != nil || p.Outcome != plan.Failed || p.Counts() != (plan.Counts{Create: 1}) || p.Resources[0].Error != "" || p.Resources[1].Error == "" {
		t.Errorf("plan: %+v, %v", p, err)
	}
	err = framework.ProcessUpdate(t.Context(), prod(), k.resources)
	k.wantDone("good")
	if !framework.IsPermanent(err) || !strings.Contains(err.Error(), "service apps/bad: the values are no YAML") {
		t.Errorf("error = %v", err)
	}
}

func TestWithoutWorkTheCheckHasNothingToSay(t *testing.T) {
	k := newKit(t)
	k.work = nil
	if err := k.resources[1].EnsureCreated(t.Context(), prod()); err != nil {
		t.Error(err)
	}
}
