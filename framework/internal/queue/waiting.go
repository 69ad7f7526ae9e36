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
func (q *Queue[T]) Since(w *Waiting[T]) time.Time { return q.Epoch.Add(w.since) }
