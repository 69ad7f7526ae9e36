package pollinformer

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/informer"
)

// Write carries out a request that creates or changes a thing, and returns its error. What write returns is how the thing is then; it
// belongs to the source afterwards, is read from it when Write returns, and is announced as any change is. If ctx is that of a
// reconciliation, it is no reason to reconcile the same object again. With an error, or a panic, nobody knows the outcome: what was written
// nevertheless is found out by a later List, as is what others have written, and what was written past Write.
//
// What is written while a List is under way is left as it is by that List, because nobody can tell whether that has seen it.
func (s *Source[T]) Write(ctx context.Context, key informer.Key, write func(ctx context.Context) (T, error)) error {
	return s.carryOut(ctx, key, func() (end func(*informer.Write), err error) {
		value, err := write(ctx)
		if err != nil {
			return nil, err
		}
		item, err := s.item(key, value)
		return func(w *informer.Write) { w.Stored(item, informer.Created, true) }, err
	})
}

// Delete is [Source.Write] for a request after which there is nothing under the key.
func (s *Source[T]) Delete(ctx context.Context, key informer.Key, remove func(ctx context.Context) error) error {
	return s.carryOut(ctx, key, func() (end func(*informer.Write), err error) {
		return func(w *informer.Write) { w.Gone(s.uid(key)) }, remove(ctx)
	})
}

// carryOut carries out a request, and ends the write as the request says.
func (s *Source[T]) carryOut(ctx context.Context, key informer.Key, request func() (end func(*informer.Write), err error)) error {
	s.writes.begin(key)
	w := s.feed.Begin(key, informer.AuthorOf(ctx))
	end := (*informer.Write).Unknown
	defer func() {
		s.writes.end(key, func() { end(w) })
	}()
	known, err := request()
	if err == nil {
		end = known
	}
	return err
}

// uid returns the UID of the thing that the source holds, if it has one.
func (s *Source[T]) uid(key informer.Key) types.UID {
	stored, _, _ := s.Get(key)
	if thing, ok := stored.(interface{ GetUID() types.UID }); ok {
		return thing.GetUID()
	}
	return ""
}

// writes are what is being written.
type writes struct {
	mu sync.Mutex
	// open counts the requests that are under way, and meanwhile has what was written since the last List began.
	open      map[informer.Key]int
	meanwhile map[informer.Key]struct{}
}

func newWrites() writes {
	return writes{open: map[informer.Key]int{}, meanwhile: map[informer.Key]struct{}{}}
}

// listBegins forgets what a List that begins now is going to see.
func (w *writes) listBegins() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.meanwhile)
	for key := range w.open {
		w.meanwhile[key] = struct{}{}
	}
}

func (w *writes) begin(key informer.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open[key]++
	w.meanwhile[key] = struct{}{}
}

// end notes that a request has ended, and does what tells the store.
func (w *writes) end(key informer.Key, tell func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open[key]--
	if w.open[key] == 0 {
		delete(w.open, key)
	}
	tell()
}
