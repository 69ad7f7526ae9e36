package framework

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/cut"
)

const (
	// managersTimeout limits the time in which managers are found for fights that start at once.
	managersTimeout = 5 * time.Second
	// maxFightFields limits the fields that a text names.
	maxFightFields = 10
)

// Fight is a change that a resource has applied five times within ten minutes, and found undone
// each time: by a webhook or another controller, or because a default does not converge. The
// resource pauses between two tries, for a minute at first and for an hour at most.
//
// A field counts with its value: a field that gets another value each time is in no fight, and
// neither is an object that the resource creates and deletes in turn. Values that must not be shown
// are not counted. The counts start over with a new generation of the
// reconciled object, and with another object of its name.
//
// Not covered are resources that can't predict their changes, [Concluder]s, resources that another
// resource calls, the clean-up of an object that is being deleted, and changes whose resource asks
// for a requeue while it applies them. A [Planner] is covered if it runs more often than every two
// minutes. Then it is planned before it runs.
type Fight struct {
	// Key is the key of the reconciled object in the primary source.
	Key informer.Key `json:"-"`
	// Resource is the name of the resource.
	Resource string `json:"resource"`
	// Action and Object say what is undone.
	Action plan.Action `json:"action"`
	Object plan.Object `json:"object"`
	// Fields are the paths of the undone fields, sorted. They are empty unless Action is an update.
	Fields []string `json:"fields,omitempty"`
	// Managers are the other field managers of the fields, with the times of their last writes. It
	// is empty if none is known.
	Managers []string `json:"managers,omitempty"`
	// Since is when the change was first applied, Last is when it was last found undone, and Next
	// is when it is tried again.
	Since time.Time `json:"since"`
	Last  time.Time `json:"last"`
	Next  time.Time `json:"next"`
	// Times is how often the change was found undone.
	Times int `json:"times"`
	// started is when the fight was noticed.
	started time.Time
}

// String returns what is undone and by what, without values.
func (f Fight) String() string { return f.subject() + ": " + f.undoer() }

// undoer says what undoes the change.
func (f Fight) undoer() string {
	if len(f.Managers) == 0 {
		return "what undoes it is not known"
	}
	return "also written by " + strings.Join(f.Managers, ", ")
}

// subject returns what is undone.
func (f Fight) subject() string {
	text := fmt.Sprintf("%s of %s", f.Action, f.Object)
	if len(f.Fields) == 0 {
		return text
	}
	text += " (" + strings.Join(f.Fields[:min(len(f.Fields), maxFightFields)], ", ")
	if more := len(f.Fields) - maxFightFields; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + ")"
}

// Fights returns the changes that are undone again and again, the earliest first. It may be called
// at any time. The slice is the caller's, but the fields and managers must not be changed.
func (f *Framework) Fights() (all []Fight) {
	now := time.Now()
	f.fights.mu.Lock()
	defer f.fights.mu.Unlock()
	listed := map[*Fight]bool{}
	for _, o := range f.fights.objects {
		for _, a := range o.changes {
			if of := a.fight; of != nil && !listed[of] && !of.over(now) {
				listed[of] = true
				all = append(all, *of)
			}
		}
	}
	slices.SortFunc(all, func(a, b Fight) int {
		return cmp.Or(a.started.Compare(b.started), cmp.Compare(a.subject(), b.subject()))
	})
	return all
}

// report finds the other managers of a fight that starts, and reports it by an event and a log
// message.
func (f *fights) report(ctx context.Context, of *Fight) {
	if f.managers != nil {
		f.framework.guard("find the managers of fields", func() {
			managers := f.managers(ctx, of.Resource, of.Object, of.Fields)
			f.mu.Lock()
			defer f.mu.Unlock()
			of.Managers = managers
		}, "object", of.Object.String())
	}
	obj := scopeOf(ctx).reconciliation.object
	f.framework.log("warning", "a change is undone again and again", "resource", of.Resource,
		"object", describe(obj, of.Key), "change", of.String())
	message := fmt.Sprintf("resource %q applied the %s %d times, and found it undone each time: %s; "+
		"it is tried again after growing pauses", of.Resource, of.subject(), of.Times, of.undoer())
	if record := f.framework.reporter.recordOn(obj); record != nil {
		record(corev1.EventTypeWarning, ReasonChangeUndone, cut.Text(message, maxEventMessage))
	}
}

// FindManagers implements access.Engine.
func (f engine) FindManagers(
	find func(ctx context.Context, resource string, object plan.Object, fields []string) []string,
) {
	f.fights.managers = find
}
