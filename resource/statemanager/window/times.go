package window

import (
	"slices"
	"sort"
	"time"
)

// effort is what was done to find times: the days that were looked at, and the times of those on which the clocks are changed.
type effort int

// has tells whether a value is one of a field.
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

// dayOf returns the day that it is in the place of the schedule, as the midnight of UTC with the same date.
func (s *schedule) dayOf(at time.Time) time.Time {
	year, month, day := at.In(s.place).Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// openings returns how often the window opens on a day, and when, in order. No place is further from UTC than the day that is looked at
// on either side.
func (s *schedule) openings(day time.Time, spent *effort) (count int, at func(i int) time.Time) {
	*spent++
	if !s.onDay(day) {
		return 0, nil
	}
	before, after := s.offset(day.AddDate(0, 0, -1)), s.offset(day.AddDate(0, 0, 2))
	opening := func(i int) time.Time {
		return s.opening(day.Add(time.Duration(s.times[i])*time.Minute), before, after)
	}
	if before == after {
		return len(s.times), opening
	}
	// What the clocks leave out may be later than what comes behind it.
	*spent += effort(len(s.times))
	sorted := make([]time.Time, len(s.times))
	for i := range sorted {
		sorted[i] = opening(i)
	}
	slices.SortFunc(sorted, time.Time.Compare)
	return len(sorted), func(i int) time.Time { return sorted[i] }
}

// opening returns when the clocks show a time, which is given as they show it in UTC: the first time that they do, and where they leave it
// out, as much later as they are put forward. Which of them time.Date returns depends on the place.
func (s *schedule) opening(shown time.Time, before, after time.Duration) time.Time {
	old, changed := shown.Add(-before).In(s.place), shown.Add(-after).In(s.place)
	if s.offset(old) != before && s.offset(changed) == after {
		return changed
	}
	return old
}

// offset returns by how much the clocks of the place are ahead of UTC.
func (s *schedule) offset(at time.Time) time.Duration {
	_, seconds := at.In(s.place).Zone()
	return time.Duration(seconds) * time.Second
}

// farthest is how many days ahead a time is looked for: over the leap day that a century leaves out.
const farthest = 366 * 9

// next returns the first time after another one at which the window opens; zero is never.
func (s *schedule) next(after time.Time, spent *effort) time.Time {
	today := s.dayOf(after)
	for ahead := range farthest {
		// The day before too: its last hours may be an hour later.
		count, at := s.openings(today.AddDate(0, 0, ahead-1), spent)
		if first := sort.Search(count, func(i int) bool { return at(i).After(after) }); first < count {
			return at(first)
		}
	}
	return time.Time{}
}

// openAt tells whether a window with a duration is open at a time, and until when.
func (s *schedule) openAt(at time.Time, duration time.Duration, spent *effort) (until time.Time, open bool) {
	today := s.dayOf(at)
	for back := range int(duration/(24*time.Hour)) + 3 {
		count, opening := s.openings(today.AddDate(0, 0, -back), spent)
		if later := sort.Search(count, func(i int) bool { return opening(i).After(at) }); later > 0 {
			until = opening(later - 1).Add(duration)
			return until, until.After(at)
		}
	}
	return time.Time{}, false
}
