package operatortest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Mishap is what befalls an operator at one of its writes.
type Mishap int

const (
	// CrashBefore ends the operator right before the write, which is never sent.
	CrashBefore Mishap = iota
	// CrashAfter ends the operator right after the write, which is carried out: its answer is lost.
	CrashAfter
	// AnswerLost carries the write out and breaks the connection.
	AnswerLost
	// AnswerNotFound carries the write out and answers 404: see [LieNotFound].
	AnswerNotFound
	// AnswerConflict carries the write out and answers 409: see [LieConflict].
	AnswerConflict
	// AnswerInternalError carries the write out and answers 500: see [LieInternalError].
	AnswerInternalError

	// RestartBehind ends the operator right after the write, and starts it at a lagging replica: what lists of any version and watches show lacks
	// the last one to four changes, until it has acted on that: it writes nothing more. See [Lag.GoBack].
	RestartBehind
	// RestartInThePast is time travel: [RestartBehind] with what was before the user's part of the phase, or of the phase before it.
	RestartInThePast
	// RestartWarm ends the operator right after the write, and starts one that has waited for its turn with caches that lack the last one
	// to four changes, until it has acted on that. See [Lag.Warm].
	RestartWarm
	// EventsHeld keeps the events of all watches from the write on, until the operator writes nothing more.
	EventsHeld
	// EventsReordered keeps the events of one kind, so that those of the others come before them.
	EventsReordered
	// EventsDropped loses the events of all watches from the write on, until a listing: see [Lag.Drop].
	EventsDropped
	// EventsRepeated gives events several times: see [Lag.Repeat].
	EventsRepeated
	// WatchesRefused ends all watches at the write as expired, and answers 410, 429 and 500 to what comes next of each kind.
	WatchesRefused

	// TenantMeddles calls Scenario.Tenant right after the write.
	TenantMeddles
)

// lies are the mishaps after which the operator goes on.
var lies = []Mishap{AnswerLost, AnswerNotFound, AnswerConflict, AnswerInternalError}

// String is, for example, "crash before" or "lying 404 to".
func (m Mishap) String() string {
	switch m {
	case CrashBefore:
		return "crash before"
	case CrashAfter:
		return "crash after"
	case AnswerLost:
		return "lost answer to"
	case AnswerNotFound:
		return "lying 404 to"
	case AnswerConflict:
		return "lying 409 to"
	case AnswerInternalError:
		return "lying 500 to"
	case RestartBehind:
		return "restart at a lagging replica after"
	case RestartInThePast:
		return "restart in the past after"
	case RestartWarm:
		return "restart with an old cache after"
	case EventsHeld:
		return "events held from"
	case EventsReordered:
		return "events of a kind held from"
	case EventsDropped:
		return "events dropped from"
	case EventsRepeated:
		return "events repeated from"
	case WatchesRefused:
		return "watches refused from"
	case TenantMeddles:
		return "tenant after"
	}
	return fmt.Sprintf("Mishap(%d)", int(m))
}

func (m Mishap) isCrash() bool { return m == CrashBefore || m == CrashAfter || m.isRestart() }

// isRestart is whether the operator that is started after it sees the past.
func (m Mishap) isRestart() bool {
	return m == RestartBehind || m == RestartInThePast || m == RestartWarm
}

// isLag is whether lists or watches show something else than the truth.
func (m Mishap) isLag() bool { return m >= RestartBehind && m <= WatchesRefused }

// Point is a mishap and its write. The write is the one that the run really had, which may be another than the run without
// a mishap had at that number.
type Point struct {
	Mishap Mishap
	// Life is that of the operator, from 1: each crash begins another one, which counts its writes anew.
	Life  int
	Write Write
	// Detail says what a lagging server showed, such as "2 changes back"; empty for other mishaps.
	Detail string
}

// String is, for example, "crash before write 3: PATCH configmaps/web".
func (p Point) String() string {
	text := fmt.Sprintf("%s write %d: %s", p.Mishap, p.Write.N, p.Write.Request)
	if p.Life > 1 {
		text = fmt.Sprintf("%s write %d of life %d: %s", p.Mishap, p.Write.N, p.Life, p.Write.Request)
	}
	if p.Detail != "" {
		text += " (" + p.Detail + ")"
	}
	return text
}

// Failure is a run with mishaps that did not come to its end, or not to the same one.
type Failure struct {
	// Points are the mishaps, in their order. Those that were not reached are at the end.
	Points []Point
	// Phase is the phase that failed: that of a mishap or a later one.
	Phase string
	// Reason says what is wrong, in a line.
	Reason string
	// Diff shows how the objects differ, "-" from the run without a mishap, "+"
	// from this one; empty when they were not compared.
	Diff string
}

// Error is the failure as a test reports it.
func (f Failure) Error() string {
	text := fmt.Sprintf("%s: phase %q: %s", describePoints(f.Points), f.Phase, f.Reason)
	if f.Diff != "" {
		text += "\n(-without a mishap +with it)\n" + f.Diff
	}
	return text
}

func describePoints(points []Point) string {
	texts := make([]string, len(points))
	for i, point := range points {
		texts[i] = point.String()
	}
	return strings.Join(texts, ", then ")
}

// Tally is what came of the runs that met a mishap. A run with two mishaps counts for both.
type Tally struct {
	// Runs is how many there were.
	Runs int
	// Converged is how many of them came to the same end as the run without a mishap.
	Converged int
	// Wrong is how many of their writes were wrong, whether they were made good later or not: see [LagAtEveryWrite].
	Wrong int
}

// Report is what a sweep found.
type Report struct {
	// Scenario is its name.
	Scenario string
	// Writes are the operator's in the first run without a mishap.
	Writes []Write
	// Crashes is how often the operator crashed, Lies how often it was told wrong answers, and Lags how often the server lagged behind,
	// restarts included that are no crashes then, in all runs.
	Crashes, Lies, Lags int
	// Met tells of each mishap that there was what came of it.
	Met map[Mishap]Tally
	// NotReached has the points whose run ended before it made so many
	// writes: they prove nothing, and are no failures. Their writes are those of
	// the run without a mishap, as far as it had them.
	NotReached []Point
	// Failures is empty when all is well; else in the order of the points.
	Failures []Failure
}

// Err joins the failures; nil when there is none.
func (r *Report) Err() error {
	errs := make([]error, len(r.Failures))
	for i, failure := range r.Failures {
		errs[i] = failure
	}
	return errors.Join(errs...)
}

// Summary tells in a few lines what was done and what came of each mishap, without the failures.
func (r *Report) Summary() string {
	var text strings.Builder
	fmt.Fprintf(&text, "scenario %q: %d writes, %d crashes, ", r.Scenario, len(r.Writes), r.Crashes)
	if r.Lies > 0 {
		fmt.Fprintf(&text, "%d lies, ", r.Lies)
	}
	if r.Lags > 0 {
		fmt.Fprintf(&text, "%d lags, ", r.Lags)
	}
	fmt.Fprintf(&text, "%d failures", len(r.Failures))
	for _, mishap := range slices.Sorted(maps.Keys(r.Met)) {
		tally := r.Met[mishap]
		fmt.Fprintf(&text, "\n  %s a write: %d runs, %d converged, %d wrong writes", mishap, tally.Runs, tally.Converged, tally.Wrong)
	}
	for _, write := range r.Writes {
		fmt.Fprintf(&text, "\n  %s", write)
	}
	for _, point := range r.NotReached {
		fmt.Fprintf(&text, "\n  not reached: %s", point)
	}
	return text.String()
}
