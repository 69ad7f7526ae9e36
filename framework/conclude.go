package framework

import (
	"context"
	"fmt"

	"github.com/operatorkit/operatorkit/context/deletionallowedcontext"
	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/internal/faults"
)

// Concluder is implemented by resources that conclude a reconciliation, such as one that writes how it went into a status. They stand at
// the end of their set and run also after an error of an earlier resource, which stays the error of the reconciliation; ConclusionOf
// tells them of it. CRUD resources whose Ops implement it, and resources that wrap steps, do.
//
// A cancelled reconciliation is not concluded, nor is one whose context has ended, or that fails before its first resource. A plan
// foresees what is written after a success; when it is applied, what has come about is written, without being compared once more.
type Concluder interface {
	// Concludes tells whether the resource is one. It is constant.
	Concludes() bool
}

func concludes(r any) bool {
	c, ok := r.(Concluder)
	return ok && c.Concludes()
}

// Concludes implements Concluder.
func (r *TypedCRUDResource[O, S]) Concludes() bool { return concludes(r.TypedCRUDResourceOps) }

// Concludes implements Concluder.
func (w *wrapped) Concludes() bool { return concludes(w.Resource) }

// Conclusion is how a reconciliation has gone.
type Conclusion struct {
	// Outcome is Failed after an error; Waiting if a [Policy] has held something, and in a deletion that is
	// not finished with this reconciliation; and otherwise Succeeded.
	Outcome Outcome
	// Err is the error, which names the resource and the step.
	Err error
	// Deleting tells that the object is being deleted.
	Deleting bool
	// Lasting tells that a conflict in which this reconciliation ends is one that people are told of (see IsConflict): as many came before
	// it, in a row. It is false outside of a framework.
	Lasting bool
}

// ConclusionOf returns how the reconciliation of ctx has gone up to the resource that asks. In a plan, and outside of a
// reconciliation, it has succeeded, or waits.
func ConclusionOf(ctx context.Context) Conclusion {
	s := scopeOf(ctx)
	if s == nil {
		return Conclusion{Outcome: Succeeded}
	}
	r := s.reconciliation
	c := Conclusion{Outcome: Succeeded, Err: r.failure, Deleting: r.event == deleteEvent}
	if r.in != nil {
		before, _ := r.in.failures.Get(r.key)
		c.Lasting = before.conflicts+1 >= toldConflicts
	}
	switch {
	case c.Err != nil:
		c.Outcome = Failed
	case r.held.Load(), c.Deleting && (finalizerskeptcontext.IsKept(ctx) || !deletionallowedcontext.IsDeletionAllowed(ctx)):
		c.Outcome = Waiting
	}
	return c
}

// failedToo is the error of a reconciliation that failed, and then failed to conclude. It is tried again if either of them has to be:
// only that one is wrapped.
func failedToo(failure, conclusion error) error {
	if IsPermanent(failure) && !IsPermanent(conclusion) {
		return fmt.Errorf("%w; this came after: %s", conclusion, failure.Error())
	}
	return fmt.Errorf("%w; then: %s", failure, conclusion.Error())
}

// misplacedConclusions adds the faults of resources that stand after one that concludes, and don't.
func misplacedConclusions(resources []Resource, wrong *faults.List) {
	last := ""
	for i, r := range resources {
		switch {
		case concludes(r):
			last = r.Name()
		case last != "":
			wrong.Add("Resources[%d]: %q must stand before %q, which concludes the reconciliation", i, r.Name(), last)
		}
	}
}
