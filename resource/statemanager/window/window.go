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
		if read.next(time.Unix(0, 0)).IsZero() {
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

// most is at how many openings and closings it is looked for a time at which all windows let changes be made.
const most = 5000

// Closed is why nothing may be changed now.
type Closed struct {
	// Reason names the window that is open and denies it, or says that none is open.
	Reason string
	// Until is when it may be changed at the earliest; zero is not within a year.
	Until time.Time
}

// String says it as people read it.
func (c *Closed) String() string {
	if c.Until.IsZero() {
		return c.Reason + ", and not within a year"
	}
	return fmt.Sprintf("%s, until %s", c.Reason, c.Until.Format("Mon, 02 Jan 2006 15:04 MST"))
}

// Closed tells why something may not be done at a time; nil is that it may.
func (w *Windows) Closed(now time.Time, what What) *Closed {
	closed, next := w.at(now, what)
	if closed == nil {
		return nil
	}
	for range most {
		if next.IsZero() || next.After(now.AddDate(1, 0, 0)) {
			break
		}
		until := next
		var again *Closed
		if again, next = w.at(until, what); again == nil {
			closed.Until = until
			break
		}
	}
	return closed
}

// at tells why something may not be done at a time, and when the next window opens or closes.
func (w *Windows) at(now time.Time, what What) (closed *Closed, next time.Time) {
	sooner := func(at time.Time) {
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	var allows, allowed bool
	var denied string
	for _, each := range w.all {
		if what == Removals && !each.given.Removals {
			continue
		}
		until, open := each.openAt(now, each.duration)
		if open {
			sooner(until)
		}
		sooner(each.next(now))
		if each.given.Kind == v1alpha1.ChangeWindowDeny {
			if open && denied == "" {
				denied = fmt.Sprintf("a window denies changes (%s)", each)
			}
			continue
		}
		allows, allowed = true, allowed || open
	}
	switch {
	case denied != "":
		return &Closed{Reason: denied}, next
	case allows && !allowed:
		return &Closed{Reason: "no window for changes is open"}, next
	}
	return nil, next
}

// String names the window.
func (o one) String() string {
	return fmt.Sprintf("%q for %s in %s", o.given.Schedule, o.duration, o.place)
}
