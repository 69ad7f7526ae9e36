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
	// times are those of a day, in minutes, in order.
	times                  []int
	days, months, weekdays uint64
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
	var minutes, hours uint64
	for i, into := range []*uint64{&minutes, &hours, &s.days, &s.months, &s.weekdays} {
		var err error
		if *into, err = fields[i].read(given[i]); err != nil {
			return nil, fmt.Errorf("%q: the %s %q: %w", text, fields[i].name, given[i], err)
		}
	}
	for time := range 24 * 60 {
		if has(hours, time/60) && has(minutes, time%60) {
			s.times = append(s.times, time)
		}
	}
	if has(s.weekdays, 7) {
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
			if values := f.most - f.least + 1; step > values {
				return 0, fmt.Errorf("the step %q is beyond the %d values that there are", stepText, values)
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
