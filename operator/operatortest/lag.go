package operatortest

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// Lag stands between an operator and its API server, and has lists and watches lag behind, as those of a replica of the server do whose
// cache has not caught up. Everything else goes through: a GET, and a list without a resource version, tell the truth, and writes are
// carried out.
//
//	lag := operatortest.NewLag()
//	lag.GoBack(3)                         // it begins three changes ago …
//	run(lag.Wrap(server.RESTConfig()))    // the operator under test
//	operatortest.Eventually(t, "it has acted", …)
//	lag.Release()                         // … and catches up
//
// It is a server without streaming lists: a watch that asks for them is refused, so that a client begins by a list of any version (resource
// version 0), which may be old. A client that asks for lists as true as they can be sees nothing of [Lag.GoBack], but of [Lag.Mislead].
//
// What lags does so until [Lag.Release], however long that takes. Within one watch events that are held stay before those that come, and after one
// that was lost all are, whatever is called meanwhile. Nothing is left to chance. The idea is that of Sieve (Sun et al., Automatic
// Reliability Testing for Cluster Management Controllers, OSDI 2022).
//
// All methods are safe for concurrent use. Answers are in JSON, whatever the client prefers. Several configs may be wrapped by one Lag.
type Lag struct {
	passing bool // lists are streamed: nothing ever lags
	changes *changes
	witness *witness // sees the writes; nil when nobody does

	mu       sync.Mutex
	lagging  bool
	behind   int64 // the resource version that lists of any version show; 0 is the newest
	lying    bool  // lists without a resource version show that too
	mode     watchMode
	chosen   Match              // whose events the mode is about
	warm     int64              // what the first list of all objects of a kind shows; 0 is the newest
	filled   map[string]bool    // the lists that have done so
	omit     Match              // what one list leaves out
	omitted  []*omission        // what no watch has taken over yet
	refusals map[string][]Fault // by resource
	refuse   []Fault            // what each resource begins with
	watches  map[*watching]struct{}
}

// watchMode is what happens to the events of watches.
type watchMode int

const (
	eventsPass watchMode = iota
	eventsHeld
	eventsDropped
	eventsRepeated
)

// NewLag returns a Lag with which nothing lags yet.
func NewLag() *Lag {
	return &Lag{changes: &changes{}, watches: map[*watching]struct{}{}}
}

// Wrap returns a copy of cfg whose clients send everything through l. The cfg given stays as it is and goes around l. To have faults as well,
// wrap its result: faults.Wrap(lag.Wrap(cfg)).
func (l *Lag) Wrap(cfg *rest.Config) *rest.Config {
	wrapped := rest.CopyConfig(cfg)
	wrapped.Wrap(func(next http.RoundTripper) http.RoundTripper { return &lagTransport{lag: l, next: next} })
	return wrapped
}

// GoBack shows the state before the last n changes to lists that ask for any version, and nothing newer to watches. Counted are the changes
// that l knows of: those that watches have shown, and the writes that went through it. It returns the resource version
// that is shown: that of now when there were none, and the oldest known when there were fewer.
func (l *Lag) GoBack(n int) int64 {
	version := l.changes.before(n)
	l.GoBackTo(version)
	return version
}

// GoBackTo is [Lag.GoBack] to a resource version, such as that of a list. The API server forgets old ones, after five minutes or more: then
// the client is told that it has expired (410). Version 0 is that of now.
func (l *Lag) GoBackTo(version int64) {
	l.change(func() { l.behind, l.lying, l.mode, l.chosen = version, false, eventsHeld, nil })
}

// Mislead is [Lag.GoBackTo] for lists without a resource version too, which a server answers like that behind a proxy that remembers its answers, or
// when it was set back to a backup. Only lists that ask for one object tell the truth then, by a field selector
// or by their limit.
func (l *Lag) Mislead(version int64) {
	l.change(func() { l.behind, l.lying, l.mode, l.chosen = version, true, eventsHeld, nil })
}

// Warm is the cache of a replica that has waited for its turn, and is told of nothing newer: the first list of all objects of a kind shows
// a resource version, and watches nothing newer. Later lists tell the truth.
func (l *Lag) Warm(version int64) {
	l.change(func() { l.warm, l.filled, l.mode, l.chosen = version, map[string]bool{}, eventsHeld, nil })
}

// Hold keeps the events of the watches that match accepts, in their order; nil is all of them. Holding those of one kind has the events of the
// others come before.
func (l *Lag) Hold(match Match) { l.change(func() { l.mode, l.chosen = eventsHeld, match }) }

// Drop loses the events of watches. When it is released, a watch that has lost any ends as expired (410), so that its client lists anew.
func (l *Lag) Drop(match Match) { l.change(func() { l.mode, l.chosen = eventsDropped, match }) }

// Repeat gives each event twice, and all of them once more, from the first one on, when it is released: older states after newer ones, as when a
// watch is taken up too early.
func (l *Lag) Repeat(match Match) { l.change(func() { l.mode, l.chosen = eventsRepeated, match }) }

// Omit leaves an object that match accepts out of one list, the first one of several objects that has it; of the request that match is given,
// Name is the object's. The client gets it when l is released, by the watch that goes on where the list ended, if it still knows nothing of it.
func (l *Lag) Omit(match Match) { l.change(func() { l.omit = match }) }

// Refuse ends all watches as expired (410), and answers the next lists and watches with the faults, in their order, once for each resource.
func (l *Lag) Refuse(faults ...Fault) {
	l.change(func() {
		l.refuse, l.refusals = slices.Clone(faults), map[string][]Fault{}
		for w := range l.watches {
			w.expire()
		}
	})
}

// Lags is whether anything lags: from the call of any of the methods above to [Lag.Release].
func (l *Lag) Lags() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lagging
}

// Release lets lists and watches catch up.
func (l *Lag) Release() {
	l.change(func() {
		l.lagging = false
		l.behind, l.lying, l.warm, l.mode, l.chosen, l.omit, l.refuse, l.refusals = 0, false, 0, eventsPass, nil, nil, nil, nil
		for w := range l.watches {
			w.catchUp()
		}
	})
}

func (l *Lag) change(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lagging = true
	do()
}

// watched returns the resources that are being watched, in the order of their names.
func (l *Lag) watched() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var resources []string
	for w := range l.watches {
		resources = append(resources, w.request.resource())
	}
	slices.Sort(resources)
	return slices.Compact(resources)
}

// shows is whether all objects of a resource in a namespace are being watched.
func (l *Lag) shows(resource, namespace string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.watches {
		all := w.asked.labelSelector == "" && w.asked.fieldSelector == ""
		if all && w.request.resource() == resource && (w.request.Namespace == "" || w.request.Namespace == namespace) {
			return true
		}
	}
	return false
}

// refusal is the fault that a list or a watch has to meet next. It needs the lock.
func (l *Lag) refusal(request Request) (Fault, bool) {
	if len(l.refuse) == 0 {
		return Fault{}, false
	}
	left, known := l.refusals[request.resource()]
	if !known {
		left = l.refuse
	}
	if len(left) == 0 {
		return Fault{}, false
	}
	l.refusals[request.resource()] = left[1:]
	return left[0], true
}

type lagTransport struct {
	lag  *Lag
	next http.RoundTripper
}

// WrappedRoundTripper lets apimachinery's helpers reach the transport below.
func (t *lagTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// CloseIdleConnections is what http.Client.CloseIdleConnections looks for.
func (t *lagTransport) CloseIdleConnections() { utilnet.CloseIdleConnectionsFor(t.next) }

func (t *lagTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	request, body, err := readRequest(req)
	if err != nil {
		return nil, err
	}
	sent := withBody(req.Context(), req, body)
	if request.Resource == "" || matchesAny([]Match{Leases, Events}, request) {
		return t.next.RoundTrip(sent)
	}
	sent.Header = inJSON(req.Header)
	switch {
	case request.Verb == "list" || request.Verb == "watch":
		t.lag.mu.Lock()
		fault, refused := t.lag.refusal(request)
		t.lag.mu.Unlock()
		if refused {
			return fault.do(exchange{ctx: req.Context(), request: request, shut: func() {},
				send: func(ctx context.Context) (*http.Response, error) { return t.next.RoundTrip(sent.WithContext(ctx)) }})
		}
		if request.Verb == "watch" {
			return t.watch(request, sent)
		}
		return t.list(request, sent)
	case request.isWrite():
		resp, err := t.next.RoundTrip(sent)
		if err != nil || resp.StatusCode >= http.StatusMultipleChoices {
			return resp, err
		}
		return resp, t.lag.wrote(request, resp)
	}
	return t.next.RoundTrip(sent)
}

// inJSON is a header that asks for JSON where a client prefers another encoding of objects.
func inJSON(header http.Header) http.Header {
	header = header.Clone()
	for i, accept := range header["Accept"] {
		kinds := strings.Split(accept, ",")
		for j, kind := range kinds {
			kinds[j] = strings.NewReplacer("application/vnd.kubernetes.protobuf", "application/json", "application/cbor-seq", "application/json",
				"application/cbor", "application/json", ";stream=watch", "").Replace(kind)
		}
		header["Accept"][i] = strings.Join(kinds, ",")
	}
	return header
}

// withQuery returns a request with other parameters.
func withQuery(req *http.Request, change func(url.Values)) *http.Request {
	changed := req.Clone(req.Context())
	query := changed.URL.Query()
	change(query)
	changed.URL.RawQuery = query.Encode()
	return changed
}

// noStreaming is how a server answers that streams no lists.
func noStreaming() (*http.Response, error) {
	return statusResponse(metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Message: "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch: this server streams no lists",
	})
}

// gone is how a server answers that has forgotten a resource version.
func gone() metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired,
		Message: fmt.Sprintf("%v: too old resource version", ErrInjected),
	}
}
