package window

import "time"

// Most is the effort that is made at most to find a time.
const Most = most

// ClosedFor is Closed with the effort that it took.
func (w *Windows) ClosedFor(now time.Time, what What) (*Closed, int) {
	var spent effort
	closed := w.closed(now, what, &spent)
	return closed, int(spent)
}
