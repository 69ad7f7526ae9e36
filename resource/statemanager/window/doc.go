// Package window tells when the services of a set may be changed: the changeWindows of a ServiceSet.
//
//	windows, err := window.Of(set.Spec.ChangeWindows)
//	if closed := windows.Closed(now, window.Changes); closed != nil {
//		…                       // closed.Reason says why, closed.Until when they are open again
//	}
//
// While a window of kind Deny is open, nothing is changed. Where there are windows of kind Allow, something is changed only while one of
// them is open. What is taken away is held up only by windows that say so.
//
// # Schedules
//
// A schedule has five fields, as in crontab: minute, hour, day of the month, month and day of the week. A field is *, a number, a range, or a
// list of these with commas between, each with a step: "0 22 * * 1-5", "*/15 0-6 1,15 * *". A step is not beyond the number of values that
// there are: "*/90 * * * *" is refused. Months and days of the week have names too (JAN, MON); 0 and 7 are Sunday. Where both days are given,
// one of them is enough. A window opens at each time of its schedule, by the clocks of its time zone, and stays open for its duration. A time
// that the clocks leave out, when summer begins, is an hour later, and one that they show twice is the first of both. Time zones are known
// without files of the machine.
package window
