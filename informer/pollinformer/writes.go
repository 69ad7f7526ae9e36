package pollinformer

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/informer"
)

// Write executes a request that creates or changes a thing, and returns its error. write returns
// the resulting state of the thing. The state belongs to the source afterwards. It is visible to
// reads when Write returns, and is announced like any change. If ctx belongs to a reconciliation,
// the change does not reconcile the same object again. After an error or a panic the outcome is
// unknown: a later List finds any change, as it finds changes by other clients and changes that
// bypass Write.
//
// A List that runs during a write does not change its key, because the List may or may not have
// seen the write.
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

// Delete is [Source.Write] for a request that leaves nothing under the key.
func (s *Source[T]) Delete(ctx context.Context, key informer.Key, remove func(ctx context.Context) error) error {
	return s.carryOut(ctx, key, func() (end func(*informer.Write), err error) {
		return func(w *informer.Write) { w.Gone(s.uid(key)) }, remove(ctx)
	})
}

// carryOut executes a request, and ends the write accordingly.
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

// writes are the writes in progress.
type writes struct {
	mu sync.Mutex
	// open counts the requests in progress. meanwhile has the keys written since the last List
	// started.
	open      map[informer.Key]int
	meanwhile map[informer.Key]struct{}
}

func newWrites() writes {
	return writes{open: map[informer.Key]int{}, meanwhile: map[informer.Key]struct{}{}}
}

// listBegins forgets the keys that a List that starts now will see.
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

// end notes that a request has ended, and calls tell, which updates the store.
func (w *writes) end(key informer.Key, tell func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open[key]--
	if w.open[key] == 0 {
		delete(w.open, key)
	}
	tell()
}
