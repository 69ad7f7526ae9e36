package operatortest

import (
	"errors"
	"fmt"
	"strings"
)

// Moment is when the operator ends, seen from one of its writes.
type Moment int

const (
	// Before is right before the write: it is never sent.
	Before Moment = iota
	// After is right after the write: it is carried out, its answer is lost.
	After
)

// String is "before" or "after".
func (m Moment) String() string {
	if m == After {
		return "after"
	}
	return "before"
}

// CrashPoint is a write and a moment. The write is the one the run really crashed
// at, which may be another than the run without a crash had at that number.
type CrashPoint struct {
	Moment Moment
	Write  Write
}

// String is, for example, "crash before write 3: PATCH configmaps/web".
func (c CrashPoint) String() string {
	return fmt.Sprintf("crash %s write %d: %s", c.Moment, c.Write.N, c.Write.Request)
}

// CrashFailure is a crash after which the scenario did not come to its end, or not
// to the same one.
type CrashFailure struct {
	CrashPoint
	// Phase is the phase that failed: that of the crash or a later one.
	Phase string
	// Reason says what is wrong, in a line.
	Reason string
	// Diff shows how the objects differ, "-" from the run without a crash, "+"
	// from this one; empty when they were not compared.
	Diff string
}

// Error is the failure as a test reports it.
func (f CrashFailure) Error() string {
	text := fmt.Sprintf("%s: phase %q: %s", f.CrashPoint, f.Phase, f.Reason)
	if f.Diff != "" {
		text += "\n(-without a crash +with it)\n" + f.Diff
	}
	return text
}

// CrashReport is what a sweep of crashes found.
type CrashReport struct {
	// Scenario is its name.
	Scenario string
	// Writes are the operator's in the first run without a crash.
	Writes []Write
	// Crashes is how many runs crashed.
	Crashes int
	// NotReached has the crash points whose run ended before it made so many
	// writes: they prove nothing, and are no failures. Their writes are those of
	// the run without a crash, as far as it had them.
	NotReached []CrashPoint
	// Failures is empty when all is well; else in the order of the crash points.
	Failures []CrashFailure
}

// Err joins the failures; nil when there is none.
func (r *CrashReport) Err() error {
	errs := make([]error, len(r.Failures))
	for i, failure := range r.Failures {
		errs[i] = failure
	}
	return errors.Join(errs...)
}

// Summary tells in a few lines what was done, without the failures.
func (r *CrashReport) Summary() string {
	var text strings.Builder
	fmt.Fprintf(&text, "scenario %q: %d writes, %d crashes, %d failures", r.Scenario, len(r.Writes), r.Crashes, len(r.Failures))
	for _, write := range r.Writes {
		fmt.Fprintf(&text, "\n  %s", write)
	}
	for _, point := range r.NotReached {
		fmt.Fprintf(&text, "\n  not reached: %s", point)
	}
	return text.String()
}
