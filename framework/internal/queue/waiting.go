package queue

import "time"

// maxTriggers is how many reasons for one wait are told apart; the rest is counted.
const maxTriggers = 3

// Waiting is why and since when a key has been waiting.
type Waiting[T any] struct {
	// First and More are the first few reasons, and Count is how many there were.
	First T
	More  []T
	Count int

	since time.Duration
}

func (w *Waiting[T]) add(why T) {
	switch {
	case w.Count == 0:
		w.First = why
	case w.Count < maxTriggers:
		w.More = append(w.More, why)
	}
	w.Count++
}

// Since is when a wait began.
func (q *Queue[T]) Since(w *Waiting[T]) time.Time { return WallTime(q.Epoch, w.since) }

// WallTime converts a time since the epoch to one of the clock as it goes now: a clock that was set since the epoch, or that ran on
// while the machine was suspended, shows another time than the epoch's.
func WallTime(epoch time.Time, since time.Duration) time.Time {
	return time.Now().Add(since - time.Since(epoch))
}
