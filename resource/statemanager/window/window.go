package window

import (
	"fmt"
	"time"
	_ "time/tzdata" // Time zones that the machine may lack.

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// What is held up.
type What int

// Changes are all but what is taken away, and Removals are that.
const (
	Changes What = iota
	Removals
)

// Windows are those of one set. They are safe for concurrent use.
type Windows struct{ all []one }

// one is a window.
type one struct {
	*schedule
	given    v1alpha1.ChangeWindow
	duration time.Duration
}

// Of reads windows. The error is permanent, and names the window and the field.
func Of(given []v1alpha1.ChangeWindow) (*Windows, error) {
	windows := &Windows{}
	for i, each := range given {
		wrong := func(field string, err error) error {
			return framework.Permanent(fmt.Errorf("changeWindows[%d].%s: %w", i, field, err))
		}
		place, err := time.LoadLocation(each.TimeZone)
		if err != nil || each.TimeZone == "Local" {
			return nil, wrong("timeZone", fmt.Errorf("there is no time zone %q: give one as Europe/Berlin", each.TimeZone))
		}
		read, err := scheduleOf(each.Schedule, place)
		if err != nil {
			return nil, wrong("schedule", err)
		}
		if read.next(time.Unix(0, 0), new(effort)).IsZero() {
			return nil, wrong("schedule", fmt.Errorf("%q is never", each.Schedule))
		}
		if d := each.Duration.Duration; d < time.Minute || d > longest {
			return nil, wrong("duration", fmt.Errorf("%s is not between a minute and %s", d, longest))
		}
		windows.all = append(windows.all, one{schedule: read, given: each, duration: each.Duration.Duration})
	}
	return windows, nil
}

// longest is the longest duration of a window.
const longest = 31 * 24 * time.Hour

// most is how much effort is made to find a time at which all windows let changes be made: days of schedules that are looked at.
const most = 100_000

// Closed is why nothing may be changed now.
type Closed struct {
	// Reason names the window that is open and denies it, or says that none is open.
	Reason string
	// Until is when it may be changed at the earliest; zero is not within a year.
	Until time.Time
	// further tells that nobody has looked for a time behind Until.
	further bool
}

// String says it as people read it.
func (c *Closed) String() string {
	switch {
	case c.Until.IsZero():
		return c.Reason + ", and not within a year"
	case c.further:
		return fmt.Sprintf("%s, and not before %s", c.Reason, c.Until.Format("Mon, 02 Jan 2006"))
	}
	return fmt.Sprintf("%s, until %s", c.Reason, c.Until.Format("Mon, 02 Jan 2006 15:04 MST"))
}

// Closed tells why something may not be done at a time; nil is that it may. Where windows open and close so often that it would take long to
// find out when it may be done, Until is as far as it is known that it may not.
func (w *Windows) Closed(now time.Time, what What) *Closed {
	return w.closed(now, what, new(effort))
}

func (w *Windows) closed(now time.Time, what What, spent *effort) *Closed {
	var closed *Closed
	opens := make([]time.Time, len(w.all))
	for at := now; ; {
		why, until := w.at(at, what, opens, spent)
		switch {
		case why == "" && closed != nil:
			closed.Until = at
			return closed
		case why == "":
			return nil
		case closed == nil:
			closed = &Closed{Reason: why}
		}
		if until.IsZero() || until.After(now.AddDate(1, 0, 0)) {
			return closed
		}
		if *spent >= most {
			closed.Until, closed.further = until, true
			return closed
		}
		at = until
	}
}

// at tells why something may not be done at a time, and until when that holds at least; empty is that it may. opens has when windows open
// next, as far as that is known.
func (w *Windows) at(now time.Time, what What, opens []time.Time, spent *effort) (why string, until time.Time) {
	var allows []int
	for i, each := range w.all {
		switch {
		case what == Removals && !each.given.Removals:
		case each.given.Kind != v1alpha1.ChangeWindowDeny:
			allows = append(allows, i)
		default:
			end, open := each.openAt(now, each.duration, spent)
			if open && why == "" {
				why = fmt.Sprintf("a window denies changes (%s)", each)
			}
			if open && end.After(until) {
				until = end
			}
		}
	}
	if why != "" || len(allows) == 0 {
		return why, until
	}
	for _, i := range allows {
		if _, open := w.all[i].openAt(now, w.all[i].duration, spent); open {
			return "", time.Time{}
		}
	}
	for _, i := range allows {
		if !opens[i].After(now) {
			opens[i] = w.all[i].next(now, spent)
		}
		if next := opens[i]; !next.IsZero() && (until.IsZero() || next.Before(until)) {
			until = next
		}
	}
	return "no window for changes is open", until
}

// String names the window.
func (o one) String() string {
	return fmt.Sprintf("%q for %s in %s", o.given.Schedule, o.duration, o.place)
}
