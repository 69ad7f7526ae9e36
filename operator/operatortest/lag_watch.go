package operatortest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/watch"
)

// watchEvent is an event as the API server sends it.
type watchEvent struct {
	Type   watch.EventType `json:"type"`
	Object json.RawMessage `json:"object"`
}

// watching is a watch on its way: what the server sends, and what of it the client may see. All but Read and Close need the lock of the lag.
type watching struct {
	lag     *Lag
	request Request
	asked   question
	at      int64         // the resource version up to which the client has seen everything, but for what it lacks
	lacks   []*omission   // what the list before it has left out
	body    io.ReadCloser // the server's
	cancel  context.CancelFunc
	ended   chan struct{} // closed when nothing more is read from it

	mu      sync.Mutex
	more    *sync.Cond
	ready   bytes.Buffer // what the client may read
	err     error        // what it reads then; nil while more may come
	closed  bool
	kept    []watchEvent // held, or to be repeated
	shown   []watchEvent // all that went through while events are repeated
	dropped bool         // whether any event was lost
	over    error        // how the server's answer ended while events were held
}

// watch answers a watch.
func (t *lagTransport) watch(request Request, req *http.Request) (*http.Response, error) {
	if !t.lag.passing && isTrue(req.URL.Query().Get("sendInitialEvents")) {
		return noStreaming()
	}
	ctx, cancel := context.WithCancel(req.Context())
	resp, err := t.next.RoundTrip(req.WithContext(ctx))
	if err != nil || resp.StatusCode != http.StatusOK {
		cancel()
		return resp, err
	}
	w := &watching{lag: t.lag, request: request, asked: t.question(request, req), body: resp.Body, cancel: cancel, ended: make(chan struct{})}
	w.at = objectMeta{ResourceVersion: req.URL.Query().Get("resourceVersion")}.version()
	w.more = sync.NewCond(&w.mu)
	t.lag.mu.Lock()
	w.begin()
	t.lag.mu.Unlock()
	go w.receive()
	resp.Body = w
	return resp, nil
}

// begin takes over what the list before the watch has left out.
func (w *watching) begin() {
	w.lag.watches[w] = struct{}{}
	w.lag.omitted = slices.DeleteFunc(w.lag.omitted, func(o *omission) bool {
		mine := o.of == w.asked && o.version == w.at
		if mine {
			w.lacks = append(w.lacks, o)
		}
		return mine
	})
	if !w.lag.lagging {
		w.catchUp()
	}
}

// receive takes in what the server sends, until it or the client ends the watch.
func (w *watching) receive() {
	defer close(w.ended)
	decoder := json.NewDecoder(w.body)
	for {
		var event watchEvent
		err := decoder.Decode(&event)
		w.lag.mu.Lock()
		if err != nil {
			w.end(err)
			w.lag.mu.Unlock()
			return
		}
		w.take(event)
		w.lag.mu.Unlock()
	}
}

// take decides about an event.
func (w *watching) take(event watchEvent) {
	bookmark := event.Type == watch.Bookmark || event.Type == watch.Error
	meta := readMeta(event.Object)
	if !bookmark {
		w.lag.changes.add(meta.version())
		w.lacks = slices.DeleteFunc(w.lacks, func(o *omission) bool { return o.uid == meta.UID })
	}
	mode := w.lag.mode
	if w.lag.chosen != nil && !w.lag.chosen(w.request) {
		mode = eventsPass
	}
	switch { // Until it is released, no event comes before one that is held, nor after one that is lost.
	case w.dropped:
		mode = eventsDropped
	case len(w.kept) > 0 && mode != eventsDropped:
		mode = eventsHeld
	}
	switch mode {
	case eventsHeld:
		w.kept = append(w.kept, event)
		return
	case eventsDropped:
		w.dropped = w.dropped || !bookmark
		return
	case eventsRepeated:
		if !bookmark {
			w.shown = append(w.shown, event)
			w.send(event)
		}
	case eventsPass:
	}
	w.send(event)
}

// catchUp gives the client what it has missed, what its list has left out too.
func (w *watching) catchUp() {
	for _, o := range w.lacks {
		if object, err := json.Marshal(o.object); err == nil {
			w.send(watchEvent{Type: watch.Added, Object: object})
		}
	}
	for _, event := range slices.Concat(w.shown, w.kept) {
		w.send(event)
	}
	w.lacks, w.kept, w.shown = nil, nil, nil
	if w.dropped {
		w.expire()
	}
	if w.over != nil {
		w.finish(w.over)
	}
}

// expire ends the watch as one whose resource version the server has forgotten.
func (w *watching) expire() {
	object, err := json.Marshal(gone())
	if err != nil {
		return
	}
	w.lacks, w.kept, w.shown, w.dropped = nil, nil, nil, false
	w.send(watchEvent{Type: watch.Error, Object: object})
	w.finish(io.EOF)
}

// end notes that the server has ended its answer.
func (w *watching) end(err error) {
	if len(w.kept) > 0 && err == io.EOF { //nolint:errorlint // a body says it so
		w.over = err
		return
	}
	w.finish(err)
}

// finish ends the client's answer, after what it may still read.
func (w *watching) finish(err error) {
	delete(w.lag.watches, w)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
		w.more.Broadcast()
	}
}

func (w *watching) send(event watchEvent) {
	if version := readMeta(event.Object).version(); version > 0 {
		w.at = version
	}
	line, err := json.Marshal(event)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return
	}
	w.ready.Write(append(line, '\n'))
	w.more.Broadcast()
}

// Read gives what the client may see, and waits for it.
func (w *watching) Read(buffer []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.ready.Len() == 0 && w.err == nil && !w.closed {
		w.more.Wait()
	}
	switch {
	case w.closed:
		return 0, http.ErrBodyReadAfterClose
	case w.ready.Len() > 0:
		return w.ready.Read(buffer)
	}
	return 0, w.err
}

// Close ends the watch, and returns when nothing more of it goes on.
func (w *watching) Close() error {
	w.mu.Lock()
	w.closed = true
	w.more.Broadcast()
	w.mu.Unlock()
	w.cancel()
	err := w.body.Close()
	<-w.ended
	w.lag.mu.Lock()
	delete(w.lag.watches, w)
	for _, o := range w.lacks {
		o.version = w.at
	}
	w.lag.omitted = append(w.lag.omitted, w.lacks...)
	w.lacks = nil
	w.lag.mu.Unlock()
	return err
}
