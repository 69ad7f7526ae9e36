package framework

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/internal/faults"
	"github.com/operatorkit/operatorkit/internal/ledger"
)

// Guard is a policy about what a resource is about to do. Every change of every resource is shown
// to it, between computing and applying, except those of a [Concluder]. Package operator/guards
// makes guards of a file with expressions.
//
// A guard that can't be evaluated denies: it returned an error or panicked, or its limit could not
// be charged.
type Guard struct {
	// Name identifies the guard in errors, events and plans. It is unique within a framework, and
	// has no slash. Required.
	Name string
	// Match reports whether the guard is about a change. It must not change anything, and must be
	// quick: a worker waits for it. It is called for different objects at the same time, and for
	// plans. Required.
	Match func(ctx context.Context, in GuardInput) (bool, error)
	// Action is what happens if a change matches. Required, unless Limit is set.
	Action GuardAction
	// Message says why, or what to do. Default: none.
	Message string
	// Limit lets so many matching changes through in a time. What is beyond is held. Not together
	// with Action. Default: none.
	Limit *GuardLimit
	// Rights are the rights at the API server that Match needs. Default: none.
	Rights []Right
}

// Verdict returns what the guard does about a change that matches, or that it can't evaluate because
// of an error.
func (g Guard) Verdict(err error) plan.GuardVerdict {
	v := plan.GuardVerdict{Guard: g.Name, Action: g.Action, Message: g.Message}
	switch {
	case err != nil:
		v.Action, v.Message = GuardDeny, "it can't be evaluated: "+err.Error()
	case g.Limit != nil:
		v.Action, v.Message = plan.Limited, g.Limit.String()
	}
	return v
}

// GuardAction is what a guard does about a change that matches.
type GuardAction = plan.GuardAction

// The actions of guards.
const (
	// GuardDeny fails the resource before any of its changes is applied. The error wraps ErrDenied.
	// The object is retried with its backoff, because the guard may accept the change later.
	GuardDeny = plan.Denied
	// GuardApprove holds the changes of the resource until ApprovedAnnotation of the object that is
	// reconciled names their fingerprint, which an event and plans show.
	GuardApprove = plan.Unapproved
	// GuardWarn writes a warning event and a log message, once for each fingerprint and process. The
	// changes are applied.
	GuardWarn = plan.Warned
)

// ApprovedAnnotation approves changes that a guard holds. Changes beyond its limit can be approved,
// too, and are then not charged. Its value is a fingerprint, or several with commas between. The
// fingerprint of other changes is another one. Values of Secrets have no part in it.
const ApprovedAnnotation = plan.ApprovedAnnotation

// GuardLimit is how many matching changes are let through in a time, over all objects of the
// operator and all its replicas. A change is charged before it is applied: a crash in between costs
// a charge. The same change of the same object is charged once.
type GuardLimit struct {
	// Max is how many changes, MaxGuardLimit at most. Exactly one of Max and Percent is set.
	Max int
	// Percent limits the number of objects with such changes instead, to a part of the objects of
	// the framework: one object at least, and MaxGuardLimit at most. With sharding these are the
	// objects that the replica has.
	Percent int
	// Per is the time in which so many are let through. It has whole seconds. Required.
	Per time.Duration
}

// MaxGuardLimit is the largest number that a GuardLimit allows.
const MaxGuardLimit = ledger.MaxCharges

// GuardInput is what a guard decides about.
type GuardInput struct {
	// Object is the object that is reconciled. It must not be changed. It may hold values of
	// Secrets.
	Object any
	// Change is one change that the resource is about to make. Its action is plan.Unknown, and its
	// object the one that is reconciled, for a resource that can't predict its changes. It has no
	// values of Secrets.
	Change plan.Change
	// Operator, Framework and Resource name the resource that makes the change.
	Operator, Framework, Resource string
}

// ErrDenied is in the chain of the error of a resource whose changes a guard denied. Its text is a
// part of that of the error.
var ErrDenied = errors.New("denies")

// The reasons of the events about guards.
const (
	ReasonWaitsForApproval = "WaitsForApproval"
	ReasonBeyondLimit      = "BeyondLimit"
	ReasonGuardWarning     = "GuardWarning"
)

// validateGuards adds the faults of guards.
func validateGuards(guards []Guard, wrong *faults.List) {
	names := map[string]bool{}
	for i, g := range guards {
		at := fmt.Sprintf("Guards[%d], %q,", i, g.Name)
		wrong.If(g.Name == "", "Guards[%d].Name must not be empty", i)
		wrong.If(g.Name != "" && names[g.Name], "%s must not have the name of an earlier one", at)
		wrong.If(strings.Contains(g.Name, "/"), "%s must have a name without a slash", at)
		names[g.Name] = true
		wrong.If(g.Match == nil, "%s must have a Match", at)
		switch {
		case g.Limit != nil:
			wrong.If(g.Action != "", "%s must not have both an Action and a Limit: make two guards", at)
			err := g.Limit.Validate()
			wrong.If(err != nil, "%s must have a Limit with %v", at, err)
		case g.Action != GuardDeny && g.Action != GuardApprove && g.Action != GuardWarn:
			wrong.Add("%s must have the Action %q, %q or %q, or a Limit; its Action is %q",
				at, GuardDeny, GuardApprove, GuardWarn, g.Action)
		}
	}
}

// Validate returns a fault of the limit, in the form "per of whole seconds, is 1ms", or nil.
func (l GuardLimit) Validate() error {
	switch {
	case (l.Max == 0) == (l.Percent == 0):
		return errors.New("either max or percent")
	case l.Max < 0 || l.Max > MaxGuardLimit:
		return fmt.Errorf("max from 1 to %d, is %d", MaxGuardLimit, l.Max)
	case l.Percent < 0 || l.Percent > 100:
		return fmt.Errorf("percent from 1 to 100, is %d", l.Percent)
	case l.Per < time.Second || l.Per%time.Second != 0:
		return fmt.Errorf("per of whole seconds, is %s", l.Per)
	}
	return nil
}

// String returns the limit in words.
func (l GuardLimit) String() string {
	if l.Percent > 0 {
		return fmt.Sprintf("%d %% of the objects in %s", l.Percent, l.Per)
	}
	return fmt.Sprintf("%d in %s", l.Max, l.Per)
}
