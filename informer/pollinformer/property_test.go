package pollinformer_test

import (
	"context"
	"io"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/giantswarm/micrologger"
	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/pollinformer"
)

// history is a sequence of changes to machines. Only their size counts: 0 is none. A List may take
// long, and so may a write.
type history struct {
	t      *rapid.T
	ctx    context.Context
	source *pollinformer.Source[machine]
	author *informer.Author

	mu     sync.Mutex
	now    map[informer.Key]machine
	states map[informer.Key][]int
	// hold is what a List waits for that has seen everything, and nil if it does not wait.
	hold chan struct{}

	open []*request
	// read is the index of the last state read. known is the state that the author has read when it
	// was woken, or has written.
	read, known    map[informer.Key]int
	wakes, reasons int
}

// request is a write of the author that was carried out.
type request struct {
	key    informer.Key
	state  int
	answer chan error
	done   chan error
}

// set makes a change, and returns which of the states that is.
func (h *history) set(key informer.Key, size int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now[key] = machine{Size: size}
	if size == 0 {
		delete(h.now, key)
	}
	h.states[key] = append(h.states[key], size)
	return len(h.states[key]) - 1
}

func (h *history) list(ctx context.Context) (map[informer.Key]machine, error) {
	h.mu.Lock()
	seen, hold := maps.Clone(h.now), h.hold
	h.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
		}
	}
	return seen, nil
}

// get returns what the source has.
func (h *history) get(key informer.Key) int {
	stored, _, err := h.source.Get(key)
	if err != nil {
		h.t.Fatal(err)
	}
	m, _ := stored.(machine)
	return m.Size
}

func (h *history) send(key informer.Key, size int) {
	r := &request{key: key, answer: make(chan error), done: make(chan error, 1)}
	h.open = append(h.open, r)
	ctx := context.WithValue(h.ctx, informer.AuthorKey, h.author)
	go func() {
		if size == 0 {
			r.done <- h.source.Delete(ctx, key, func(context.Context) error {
				r.state = h.set(key, 0)
				return <-r.answer
			})
			return
		}
		r.done <- h.source.Write(ctx, key, func(context.Context) (machine, error) {
			r.state = h.set(key, size)
			return machine{Size: size}, <-r.answer
		})
	}()
	synctest.Wait()
}

func (h *history) finish(r *request, lost bool) {
	h.open = slices.DeleteFunc(h.open, func(other *request) bool { return other == r })
	if lost {
		h.reasons++
		r.answer <- errLost
		<-r.done //nolint:errcheck // the end is waited for, whatever came of it
		return
	}
	r.answer <- nil
	if err := <-r.done; err != nil {
		h.t.Fatal(err)
	}
	h.read[r.key] = max(h.read[r.key], r.state)
	h.known[r.key] = h.get(r.key)
}

// listed lets the time pass until the next List.
func (h *history) listed() {
	time.Sleep(67 * time.Second)
	synctest.Wait()
}

// release has a List that waits end.
func (h *history) release() {
	if h.hold != nil {
		close(h.hold)
		h.mu.Lock()
		h.hold = nil
		h.mu.Unlock()
	}
	synctest.Wait()
}

// check asserts that no read returns a state earlier than one read before, or written.
func (h *history) check() {
	for _, key := range machineKeys {
		got := h.get(key)
		i := slices.Index(h.states[key][h.read[key]:], got)
		if i < 0 {
			h.t.Fatalf("%s is read as %d, after state %d of %v", key, got, h.read[key], h.states[key])
		}
		h.read[key] += i
	}
}

var machineKeys = []informer.Key{key("a"), key("b")}

// TestR11AnyOrderOfWritesAndListsIsReadAndWakesAsPromised interleaves own writes, writes of others,
// and Lists that take long.
func TestR11AnyOrderOfWritesAndListsIsReadAndWakesAsPromised(t *testing.T) {
	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		// Without its deadline, which is not available in a bubble.
		rapid.Check(struct{ rapid.TB }{t}, func(t *rapid.T) {
			h := &history{t: t, author: &informer.Author{Framework: "f", Key: key("p")}, now: map[informer.Key]machine{},
				states: map[informer.Key][]int{}, read: map[informer.Key]int{}, known: map[informer.Key]int{}}
			for _, key := range machineKeys {
				h.states[key] = []int{0}
			}
			h.source, err = pollinformer.New(pollinformer.Config[machine]{
				Name: "machines", List: h.list, Timeout: 24 * time.Hour, Logger: logger,
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			h.ctx = ctx
			done := make(chan error)
			go func() { done <- h.source.Run(ctx) }()
			defer func() {
				for _, r := range h.open {
					r.answer <- errLost
				}
				cancel()
				<-done //nolint:errcheck // the end is waited for, whatever came of it
				synctest.Wait()
			}()
			synctest.Wait()
			h.source.Subscribe(func(e informer.Event) {
				e.Wake("f", h.author.Key, func() {
					h.wakes++
					h.known[e.Key] = h.get(e.Key)
				})
			})

			keys, sizes := rapid.SampledFrom(machineKeys), rapid.IntRange(0, 3)
			t.Repeat(map[string]func(*rapid.T){
				"": func(*rapid.T) { h.check() },
				"somebody writes": func(t *rapid.T) {
					h.set(keys.Draw(t, "key"), sizes.Draw(t, "size"))
					h.reasons++
				},
				"send": func(t *rapid.T) {
					key := keys.Draw(t, "key")
					if slices.ContainsFunc(h.open, func(r *request) bool { return r.key == key }) {
						t.Skip("a reconciliation writes a thing once at a time")
					}
					h.send(key, sizes.Draw(t, "size"))
				},
				"answer": func(t *rapid.T) {
					if len(h.open) == 0 {
						t.Skip()
					}
					h.finish(rapid.SampledFrom(h.open).Draw(t, "request"), rapid.IntRange(0, 4).Draw(t, "lost") == 0)
				},
				"a List": func(*rapid.T) { h.listed() },
				"a List begins": func(*rapid.T) {
					if h.hold == nil {
						h.mu.Lock()
						h.hold = make(chan struct{})
						h.mu.Unlock()
						h.listed()
					}
				},
				"it ends": func(*rapid.T) { h.release() },
			})
			for len(h.open) > 0 {
				h.finish(h.open[0], false)
				h.check()
			}
			h.release()
			for range 2 {
				h.listed()
				h.check()
			}
			for _, key := range machineKeys {
				if h.get(key) != h.now[key].Size || h.known[key] != h.now[key].Size {
					t.Fatalf("%s is %d, is read as %d, and the author knows it as %d", key, h.now[key].Size, h.get(key), h.known[key])
				}
			}
			if h.wakes > h.reasons {
				t.Fatalf("%d wakes for %d reasons", h.wakes, h.reasons)
			}
		})
	})
}
