package logging

import (
	"context"
	"log/slog"
	"slices"

	"github.com/giantswarm/micrologger"
)

// Slog returns a slog.Logger whose messages go to logger. Attributes in groups get the names of these before theirs,
// with points between. slog's levels count as the next lower one of ours: a level below Info is debug.
func Slog(logger micrologger.Logger) *slog.Logger { return slog.New(&slogHandler{logger: logger}) }

type slogHandler struct {
	logger micrologger.Logger
	// prefix are the names of the open groups, each with a point after it.
	prefix string
}

// Enabled implements slog.Handler.
func (h *slogHandler) Enabled(_ context.Context, level slog.Level) bool {
	return enabled(h.logger, fromSlog(level))
}

// Handle implements slog.Handler.
func (h *slogHandler) Handle(ctx context.Context, r slog.Record) error {
	pairs := []any{keyLevel, fromSlog(r.Level).level(), keyMessage, r.Message}
	r.Attrs(func(a slog.Attr) bool {
		pairs = h.append(pairs, h.prefix, a)
		return true
	})
	h.logger.LogCtx(ctx, pairs...)
	return nil
}

// WithAttrs implements slog.Handler.
func (h *slogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	var pairs []any
	for _, a := range attrs {
		pairs = h.append(pairs, h.prefix, a)
	}
	if len(pairs) == 0 {
		return h
	}
	return &slogHandler{logger: h.logger.With(pairs...), prefix: h.prefix}
}

// WithGroup implements slog.Handler.
func (h *slogHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return &slogHandler{logger: h.logger, prefix: h.prefix + name + "."}
}

// append appends an attribute, or those of a group, as pairs. Keys that mean something in the stream are kept apart.
func (h *slogHandler) append(pairs []any, prefix string, a slog.Attr) []any {
	value := a.Value.Resolve()
	if value.Kind() != slog.KindGroup {
		if a.Key == "" && value.Any() == nil {
			return pairs
		}
		return append(pairs, ownKey(prefix+a.Key), harmless(value.Any()))
	}
	if a.Key != "" {
		prefix += a.Key + "."
	}
	for _, member := range value.Group() {
		pairs = h.append(pairs, prefix, member)
	}
	return pairs
}

// reserved are the keys that the stream itself sets.
var reserved = []string{keyLevel, keyMessage, keyCaller, keyTime, keyStack}

// ownKey returns a key that overwrites none of the stream's.
func ownKey(key string) string {
	if slices.Contains(reserved, key) {
		return "attr." + key
	}
	return key
}

func fromSlog(level slog.Level) severity {
	switch {
	case level < slog.LevelInfo:
		return debug
	case level < slog.LevelWarn:
		return info
	case level < slog.LevelError:
		return warning
	}
	return failure
}
