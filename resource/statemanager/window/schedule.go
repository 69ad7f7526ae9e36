package window

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// schedule is the times at which a window opens, in the clocks of a place.
type schedule struct {
	minutes, hours, days, months, weekdays uint64
	// anyDay and anyWeekday tell that the field is a star: the other one decides then.
	anyDay, anyWeekday bool
	place              *time.Location
}

// field is what one of a schedule may have.
type field struct {
	name        string
	least, most int
	names       []string
}

var fields = []field{
	{name: "minute", most: 59},
	{name: "hour", most: 23},
	{name: "day of the month", least: 1, most: 31},
	{name: "month", least: 1, most: 12, names: []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}},
	{name: "day of the week", most: 7, names: []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}},
}

// scheduleOf reads a schedule.
func scheduleOf(text string, place *time.Location) (*schedule, error) {
	given := strings.Fields(text)
	if len(given) != len(fields) {
		return nil, fmt.Errorf("%q has %d fields: it needs a minute, an hour, a day of the month, a month and a day of the week", text, len(given))
	}
	s := &schedule{place: place}
	for i, into := range []*uint64{&s.minutes, &s.hours, &s.days, &s.months, &s.weekdays} {
		var err error
		if *into, err = fields[i].read(given[i]); err != nil {
			return nil, fmt.Errorf("%q: the %s %q: %w", text, fields[i].name, given[i], err)
		}
	}
	if s.weekdays&(1<<7) != 0 {
		s.weekdays |= 1
	}
	s.anyDay, s.anyWeekday = strings.HasPrefix(given[2], "*"), strings.HasPrefix(given[4], "*")
	return s, nil
}

// read returns the values of a field as bits.
func (f field) read(text string) (bits uint64, err error) {
	for part := range strings.SplitSeq(text, ",") {
		values, stepText, stepped := strings.Cut(part, "/")
		from, to := f.least, f.most
		if values != "*" {
			first, last, isRange := strings.Cut(values, "-")
			if from, err = f.value(first); err != nil {
				return 0, err
			}
			switch {
			case isRange:
				if to, err = f.value(last); err != nil {
					return 0, err
				}
			case !stepped:
				to = from
			}
		}
		step := 1
		if stepped {
			if step, err = strconv.Atoi(stepText); err != nil || step < 1 {
				return 0, fmt.Errorf("the step %q is no positive number", stepText)
			}
		}
		if from > to {
			return 0, fmt.Errorf("the range %q goes backwards", values)
		}
		for v := from; v <= to; v += step {
			bits |= 1 << v
		}
	}
	return bits, nil
}

func (f field) value(text string) (int, error) {
	for i, name := range f.names {
		if strings.EqualFold(name, text) {
			return i + f.least, nil
		}
	}
	v, err := strconv.Atoi(text)
	if err != nil {
		return 0, errors.New("it is no number")
	}
	if v < f.least || v > f.most {
		return 0, fmt.Errorf("%d is not between %d and %d", v, f.least, f.most)
	}
	return v, nil
}

func has(bits uint64, v int) bool { return bits&(1<<v) != 0 }

// onDay tells whether the window opens on a day.
func (s *schedule) onDay(day time.Time) bool {
	if !has(s.months, int(day.Month())) {
		return false
	}
	byDay, byWeekday := has(s.days, day.Day()), has(s.weekdays, int(day.Weekday()))
	if s.anyDay || s.anyWeekday {
		return byDay && byWeekday
	}
	return byDay || byWeekday
}

// farthest is how many days ahead a time is looked for: over the leap day that a century leaves out.
const farthest = 366 * 9

// next returns the first time after another one at which the window opens; zero is never.
func (s *schedule) next(after time.Time) time.Time {
	local := after.In(s.place)
	for day := range farthest {
		// The day before too: its last hours may be an hour later.
		noon := time.Date(local.Year(), local.Month(), local.Day()+day-1, 12, 0, 0, 0, s.place)
		if !s.onDay(noon) {
			continue
		}
		for hour := range 24 {
			if !has(s.hours, hour) {
				continue
			}
			for minute := range 60 {
				if !has(s.minutes, minute) {
					continue
				}
				if at := time.Date(noon.Year(), noon.Month(), noon.Day(), hour, minute, 0, 0, s.place); at.After(after) {
					return at
				}
			}
		}
	}
	return time.Time{}
}

// openAt tells whether a window with a duration is open at a time, and until when.
func (s *schedule) openAt(at time.Time, duration time.Duration) (until time.Time, open bool) {
	local := at.In(s.place)
	for day := range int(duration/(24*time.Hour)) + 3 {
		noon := time.Date(local.Year(), local.Month(), local.Day()-day, 12, 0, 0, 0, s.place)
		if !s.onDay(noon) {
			continue
		}
		var last time.Time
		for hour := range 24 {
			if !has(s.hours, hour) {
				continue
			}
			for minute := range 60 {
				if start := time.Date(noon.Year(), noon.Month(), noon.Day(), hour, minute, 0, 0, s.place); has(s.minutes, minute) &&
					!start.After(at) && start.After(last) {
					last = start
				}
			}
		}
		if !last.IsZero() {
			until = last.Add(duration)
			return until, until.After(at)
		}
	}
	return time.Time{}, false
}
