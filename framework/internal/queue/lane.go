package queue

import "container/list"

// Lane is where a key waits. Fresh keys precede the backlog.
type Lane uint8

const (
	// Backlog is for keys of a start or a resync, and for retries.
	Backlog Lane = iota
	// Fresh is for keys that have just changed.
	Fresh
)

// freshInARow is the number of fresh keys that are taken before a key of the backlog, so that a
// constant stream of changes does not starve the backlog.
const freshInARow = 16

// lane holds entries by the namespace of their keys. The namespaces take turns, so that many
// objects of one tenant do not delay those of another. The entries of a namespace keep the order of
// their arrival. The zero value is empty.
type lane[T any] struct {
	// turns are lists of entries, one for each namespace that has any. The first has its turn next.
	turns      list.List
	namespaces map[string]*list.Element
	length     int
}

func (l *lane[T]) push(e *Entry[T]) {
	turn := l.namespaces[e.Key.Namespace]
	if turn == nil {
		if l.namespaces == nil {
			l.namespaces = map[string]*list.Element{}
		}
		turn = l.turns.PushBack(list.New())
		l.namespaces[e.Key.Namespace] = turn
	}
	e.place = turn.Value.(*list.List).PushBack(e)
	l.length++
}

func (l *lane[T]) remove(e *Entry[T]) {
	turn := l.namespaces[e.Key.Namespace]
	entries := turn.Value.(*list.List)
	entries.Remove(e.place)
	e.place = nil
	l.length--
	if entries.Len() == 0 {
		l.turns.Remove(turn)
		delete(l.namespaces, e.Key.Namespace)
	}
}

// pop removes and returns the first entry of the next namespace. The lane must not be empty.
func (l *lane[T]) pop() *Entry[T] {
	turn := l.turns.Front()
	e := turn.Value.(*list.List).Front().Value.(*Entry[T])
	l.turns.MoveToBack(turn)
	l.remove(e)
	return e
}
