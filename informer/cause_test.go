package informer_test

import (
	"testing"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/operatorkit/operatorkit/informer"
)

// The cause of a change is the author of its write, whether the event or the answer arrives first.
func TestWhatHasWrittenAChangeIsItsCause(t *testing.T) {
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}})
	key := informer.Key{Name: "a"}
	item := func(version string) informer.Item {
		return informer.Item{Key: key, Object: "version " + version, Version: version}
	}
	for name, test := range map[string]struct {
		author *informer.Author
		do     func(feed *informer.Feed, author *informer.Author, begun func())
		// before is whether the cause is known while the write is under way, and after once it has ended.
		before, after bool
	}{
		"the answer comes first": {&informer.Author{Span: &span}, func(feed *informer.Feed, author *informer.Author, begun func()) {
			feed.Begin(key, author).Stored(item("2"), "1", true)
			begun()
			feed.Set(item("2"))
		}, true, true},
		"the event comes first": {&informer.Author{Span: &span}, func(feed *informer.Feed, author *informer.Author, begun func()) {
			w := feed.Begin(key, author)
			feed.Set(item("2"))
			begun()
			w.Stored(item("2"), "1", true)
		}, false, true},
		"somebody else has changed it meanwhile": {&informer.Author{Span: &span}, func(feed *informer.Feed, author *informer.Author, begun func()) {
			w := feed.Begin(key, author)
			feed.Set(item("2"))
			begun()
			w.Unknown()
		}, false, false},
		"the span is not recorded": {&informer.Author{}, func(feed *informer.Feed, author *informer.Author, begun func()) {
			w := feed.Begin(key, author)
			feed.Set(item("2"))
			begun()
			w.Stored(item("2"), "1", true)
		}, false, false},
		"it was nobody of this process": {nil, func(feed *informer.Feed, _ *informer.Author, begun func()) {
			feed.Set(item("2"))
			begun()
		}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			hub, feed := informer.NewHub(informer.HubConfig{Name: "test", Compare: resourceversion.CompareResourceVersion})
			feed.Set(item("1"))
			feed.Replace("", []informer.Item{item("1")})
			var causes []*informer.Cause
			hub.Subscribe(func(e informer.Event) {
				if !e.Backlog {
					causes = append(causes, e.Cause())
				}
			})
			known := func(when string, want bool) {
				t.Helper()
				if len(causes) != 1 {
					t.Fatalf("there were %d events, want 1", len(causes))
				}
				if got := causes[0].Span(); (got != nil) != want || want && !got.Equal(span) {
					t.Errorf("%s the cause is %v; it is to be known: %t", when, got, want)
				}
			}
			test.do(feed, test.author, func() { known("while the write is under way", test.before) })
			known("afterwards", test.after)
		})
	}
}
