// Package liblog leads the messages of libraries, which speak log/slog, logr or klog, to a
// micrologger.Logger. It never passes on the content of an object, which may be a Secret: only its
// kind and name.
package liblog

import (
	"context"
	"log/slog"
	"slices"

	"github.com/giantswarm/micrologger"
	"k8s.io/klog/v2"
)

// NoLevel is the level of messages that have none, or an unknown one. Every threshold lets it
// through.
const NoLevel = slog.LevelError - 1

// Word returns the word for a level in micrologger's stream. A level between two words has the
// lighter one.
func Word(level slog.Level) string {
	switch {
	case level < slog.LevelInfo:
		return "debug"
	case level < slog.LevelWarn:
		return "info"
	case level < NoLevel:
		return "warning"
	case level == NoLevel:
		return ""
	}
	return "error"
}

// Around is called with each message, which it may change, and which is written when it calls
// write.
type Around func(r *slog.Record, write func())

// recorder is a micrologger that takes slog's records, with their caller.
type recorder interface {
	Enabled(level slog.Level) bool
	Record(ctx context.Context, r slog.Record, pairs []any)
}

// Handler returns a slog.Handler whose messages go to logger, through around unless that is nil.
// Attributes in groups get the names of the groups before theirs, joined with points. The key
// "err", which is logr's, becomes "error".
func Handler(logger micrologger.Logger, around Around) slog.Handler {
	h := &handler{around: around}
	if own, ok := logger.(recorder); ok {
		h.recorder = own
	} else {
		h.recorder = foreign{logger}
	}
	return h
}

// foreign is a micrologger that knows nothing of slog.
type foreign struct{ logger micrologger.Logger }

// Enabled implements recorder. Beyond debug, client-go writes the bodies of its requests.
func (f foreign) Enabled(level slog.Level) bool { return level >= slog.LevelDebug }

// Record implements recorder.
func (f foreign) Record(ctx context.Context, r slog.Record, pairs []any) {
	f.logger.LogCtx(ctx, append([]any{"level", Word(r.Level), "message", r.Message}, pairs...)...)
}

type handler struct {
	recorder
	around Around
	// prefix are the names of the open groups, each with a point after it.
	prefix string
	// pairs are those of WithAttrs.
	pairs []any
}

// Enabled implements slog.Handler.
func (h *handler) Enabled(_ context.Context, level slog.Level) bool { return h.recorder.Enabled(level) }

// Handle implements slog.Handler.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	write := func() {
		if !h.Enabled(ctx, r.Level) {
			return // Around has lowered the level.
		}
		var pairs []any
		r.Attrs(func(a slog.Attr) bool {
			pairs = appendPairs(pairs, h.prefix, a)
			return true
		})
		h.Record(ctx, r, append(pairs, h.pairs...))
	}
	if h.around == nil {
		write()
	} else {
		h.around(&r, write)
	}
	return nil
}

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	derived := *h
	derived.pairs = slices.Clip(h.pairs)
	for _, a := range attrs {
		derived.pairs = appendPairs(derived.pairs, h.prefix, a)
	}
	return &derived
}

// WithGroup implements slog.Handler.
func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	derived := *h
	derived.prefix += name + "."
	return &derived
}

// appendPairs appends an attribute, or those of a group.
func appendPairs(pairs []any, prefix string, a slog.Attr) []any {
	if ref, ok := a.Value.Any().(klog.ObjectRef); ok {
		a.Value = slog.StringValue(ref.String()) // It would resolve to a group.
	}
	value := a.Value.Resolve()
	if value.Kind() != slog.KindGroup {
		if a.Equal(slog.Attr{}) {
			return pairs
		}
		return append(pairs, ownKey(prefix+a.Key), harmless(value.Any()))
	}
	if a.Key != "" {
		prefix += a.Key + "."
	}
	for _, member := range value.Group() {
		pairs = appendPairs(pairs, prefix, member)
	}
	return pairs
}

// ownKey returns a key that overwrites none of the stream's.
func ownKey(key string) string {
	switch key {
	case "level", "message", "caller", "time", "stack":
		return "attr." + key
	case "err": // logr's
		return "error"
	}
	return key
}
