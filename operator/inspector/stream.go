package inspector

import (
	"fmt"
	"net/http"
	"time"
)

const (
	// maxStreams is how many pages may be live at once.
	maxStreams = 64
	// lookPeriod is how often a stream looks for something new, and so the least time between two messages.
	lookPeriod = 500 * time.Millisecond
	// keepAlive is how long a stream is silent at most.
	keepAlive = 15 * time.Second
	// sendTimeout is how long a client may take for one message, beyond the time until the next one.
	sendTimeout = 10 * time.Second
)

// stream tells a live page, by server-sent events, that what it shows has changed. The page asks for itself again then,
// so that there is one way only to show anything.
func (i *Inspector) stream(w http.ResponseWriter, r *http.Request) {
	select {
	case i.streams <- struct{}{}:
		defer func() { <-i.streams }()
	default:
		refuse(w, http.StatusServiceUnavailable, "too many live pages are open")
		return
	}
	version := i.versionFor(r)
	w.Header().Set("Content-Type", "text/event-stream")
	w = messages{w}
	control := http.NewResponseController(w)
	send := func(format string, args ...any) bool {
		_, err := fmt.Fprintf(w, format, args...)
		return err == nil && control.Flush() == nil
	}
	// The page was made before the stream began: what came between is told of by the first message.
	sent, at := version(), time.Now()
	if !send("retry: 2000\nevent: changed\ndata: %s\n\n", sent) {
		return
	}
	looks := time.NewTicker(lookPeriod)
	defer looks.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-i.stopping:
			return
		case <-looks.C:
		}
		now := version()
		switch {
		case now != sent:
			sent, at = now, time.Now()
			if !send("event: changed\ndata: %s\n\n", sent) {
				return
			}
		case time.Since(at) > keepAlive:
			at = time.Now()
			if !send(": nothing new\n\n") {
				return
			}
		}
	}
}

// messages writes those of a stream, each with a time-out of its own: those of the server are for all of an answer. It ends after the next
// message, because over HTTP/2 a deadline that passes ends an answer while nothing is written, too.
type messages struct{ http.ResponseWriter }

// Write implements http.ResponseWriter.
func (m messages) Write(p []byte) (int, error) {
	// Where there are no deadlines, none is in the way.
	_ = http.NewResponseController(m.ResponseWriter).SetWriteDeadline(time.Now().Add(keepAlive + sendTimeout))
	return m.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (m messages) Unwrap() http.ResponseWriter { return m.ResponseWriter }

// versionFor returns a function whose result changes with what the page shows that the request is for.
func (i *Inspector) versionFor(r *http.Request) func() string {
	id := idOf(r)
	if id.key.Name != "" {
		return func() string { return i.lastStarted(id) + "-" + i.sourceVersion(id) }
	}
	return func() string {
		i.mu.RLock()
		defer i.mu.RUnlock()
		return fmt.Sprint(i.sampled / 2)
	}
}

// lastStarted is when the last known reconciliation of an object began: no two begin at once.
func (i *Inspector) lastStarted(id objectID) string {
	h := i.memory.history(id)
	if h == nil {
		return ""
	}
	return fmt.Sprint(h.last.Load().record.Started.UnixNano())
}

// sourceVersion is the version of an object in its source, of sources that have such. Graphs are drawn of the object, which
// changes when no reconciliation is known yet, too: the status that one has written comes back after it has ended.
func (i *Inspector) sourceVersion(id objectID) string {
	s := i.framework(id.framework)
	if s == nil {
		return ""
	}
	obj, _, _ := s.framework.Sources()[0].Get(id.key)
	if o, ok := obj.(interface{ GetResourceVersion() string }); ok {
		return o.GetResourceVersion()
	}
	return ""
}
