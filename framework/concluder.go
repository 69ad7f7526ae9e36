package framework

import (
	"context"
	"fmt"

	"github.com/operatorkit/operatorkit/context/deletionallowedcontext"
	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/internal/faults"
)

// Concluder is implemented by resources that conclude a reconciliation, such as one that writes its
// outcome into a status. They are the last resources of their set. They run also after an error of
// an earlier resource, which stays the error of the reconciliation; they get it from ConclusionOf.
// A CRUD resource implements it by its Ops, and a resource that wraps steps by the wrapped
// resource.
//
// A reconciliation is not concluded if it is cancelled, if its context has ended, or if it fails
// before its first resource. A plan assumes success. When the plan is applied, the actual outcome
// is written, without another comparison.
type Concluder interface {
	// Concludes reports whether the resource concludes. It is constant.
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

// Conclusion is the outcome of a reconciliation so far.
type Conclusion struct {
	// Outcome is Failed after an error. It is Waiting if a [Policy] has held something, or if a
	// deletion does not finish with this reconciliation. Otherwise it is Succeeded.
	Outcome Outcome
	// Held says why a Policy has held something. It is empty if none has.
	Held string
	// Err is the error, which names the resource and the step.
	Err error
	// Deleting is true if the object is being deleted.
	Deleting bool
	// Lasting is true if a conflict in this reconciliation would be reported, because enough
	// conflicts in a row precede it (see IsConflict). It is false outside a framework.
	Lasting bool
}

// ConclusionOf returns the outcome of the reconciliation of ctx up to the calling resource. In a
// plan, and outside a reconciliation, it is Succeeded or Waiting.
func ConclusionOf(ctx context.Context) Conclusion {
	s := scopeOf(ctx)
	if s == nil {
		return Conclusion{Outcome: Succeeded}
	}
	r := s.reconciliation
	c := Conclusion{Outcome: Succeeded, Err: r.failure, Deleting: r.event == deleteEvent}
	if r.framework != nil {
		before, _ := r.framework.failures.Get(r.key)
		c.Lasting = lasting(before.conflicts + 1)
	}
	held := r.unfinished.Load()
	if held != nil {
		c.Held = *held
	}
	switch {
	case c.Err != nil:
		c.Outcome = Failed
	case held != nil,
		c.Deleting && (finalizerskeptcontext.IsKept(ctx) || !deletionallowedcontext.IsDeletionAllowed(ctx)):
		c.Outcome = Waiting
	}
	return c
}

// failedToo is the error of a reconciliation that failed and then failed to conclude. It wraps only
// one of the two: the conclusion if only the failure is permanent, else the failure. So it is
// retried if either must be.
func failedToo(failure, conclusion error) error {
	if IsPermanent(failure) && !IsPermanent(conclusion) {
		return fmt.Errorf("%w; this came after: %s", conclusion, failure.Error())
	}
	return fmt.Errorf("%w; then: %s", failure, conclusion.Error())
}

// misplacedConclusions adds a fault for each resource that does not conclude and follows one that
// does.
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
