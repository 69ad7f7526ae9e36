package logging

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/giantswarm/micrologger"
	"github.com/giantswarm/micrologger/loggermeta"

	"github.com/operatorkit/operatorkit/context/secretscontext"
)

// The keys of micrologger's stream that have a meaning of their own.
const (
	keyLevel   = "level"
	keyMessage = "message"
	keyStack   = "stack"
	keyCaller  = "caller"
	keyError   = "error"
	// keySuppressed is how many messages like this one were left out before it.
	keySuppressed = "suppressed"
)

// stream is where a logger, and those derived from it, write.
type stream struct {
	// threshold is nil for a stream whose level is set elsewhere.
	threshold *slog.LevelVar
	// sampler is nil for a stream that is sampled elsewhere.
	sampler *sampler
	enabled func(level slog.Level) bool
	write   func(ctx context.Context, r slog.Record) error
}

// put writes a message. Of pairs with the same key the first one counts. What ctx knows to be
// secret is left out, and what is too long is cut. Like is what messages have in common that count
// as the same.
func (s *stream) put(ctx context.Context, level slog.Level, pc uintptr, like string, pairs []any) {
	suppressed, ok := s.sampler.take(level, like)
	if !ok {
		return
	}
	if suppressed > 0 {
		pairs = append(pairs, keySuppressed, suppressed)
	}
	if meta, ok := loggermeta.FromContext(ctx); ok {
		for _, key := range slices.Sorted(maps.Keys(meta.KeyVals)) {
			pairs = append(pairs, key, meta.KeyVals[key])
		}
	}
	pairs = secretscontext.From(ctx).ScrubPairs(pairs)
	r := slog.NewRecord(time.Now(), level, "", pc)
	said := make(map[string]bool, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		key, value := fmt.Sprint(pairs[i]), pairs[i+1]
		_, known := levelOf(value)
		switch {
		case said[key], key == keyLevel && known:
		case key == keyMessage:
			r.Message = fmt.Sprint(short(key, value))
		default:
			r.AddAttrs(slog.Any(key, short(key, value)))
		}
		said[key] = true
	}
	_ = s.write(ctx, r) // A log that can't be written has nowhere to say so.
}

// logger implements micrologger.Logger.
type logger struct {
	*stream
	// with are the pairs of With. That one of them is secret may become known later.
	with []any
	// preset is the level that With gave to all messages.
	preset slog.Level
	// depth is how many functions stand between the logger and the code that logs.
	depth int
}

// failure is the error of Error and Errorf.
type failure struct{ error }

// Enabled reports whether messages of a level are written. It is for package liblog.
func (l *logger) Enabled(level slog.Level) bool { return l.enabled(level) }

// Record writes a message of a library. It is for package liblog.
func (l *logger) Record(ctx context.Context, r slog.Record, pairs []any) {
	l.put(ctx, r.Level, r.PC, r.Message, slices.Concat([]any{keyMessage, r.Message}, pairs, l.with))
}

// Debug implements micrologger.Logger.
func (l *logger) Debug(ctx context.Context, message string) {
	if l.enabled(slog.LevelDebug) {
		l.say(ctx, slog.LevelDebug, message, keyMessage, message)
	}
}

// Debugf implements micrologger.Logger.
func (l *logger) Debugf(ctx context.Context, format string, params ...any) {
	if l.enabled(slog.LevelDebug) {
		l.say(ctx, slog.LevelDebug, format, keyMessage, fmt.Sprintf(format, params...))
	}
}

// Error implements micrologger.Logger.
func (l *logger) Error(ctx context.Context, err error, message string) {
	l.say(ctx, slog.LevelError, message, failed(ctx, err, message)...)
}

// Errorf implements micrologger.Logger.
func (l *logger) Errorf(ctx context.Context, err error, format string, params ...any) {
	l.say(ctx, slog.LevelError, format, failed(ctx, err, fmt.Sprintf(format, params...))...)
}

func failed(ctx context.Context, err error, message string) []any {
	if err == nil {
		return []any{keyMessage, message}
	}
	return []any{keyMessage, message, keyError, failure{secretscontext.From(ctx).Shown(err)}}
}

// Log implements micrologger.Logger.
func (l *logger) Log(keyVals ...any) {
	if level := l.levelOf(keyVals); l.enabled(level) {
		l.say(context.Background(), level, messageOf(keyVals), keyVals...)
	}
}

// LogCtx implements micrologger.Logger.
func (l *logger) LogCtx(ctx context.Context, keyVals ...any) {
	if level := l.levelOf(keyVals); l.enabled(level) {
		l.say(ctx, level, messageOf(keyVals), keyVals...)
	}
}

// With implements micrologger.Logger. Of two pairs with the same key the later one counts.
func (l *logger) With(keyVals ...any) micrologger.Logger {
	derived := *l
	derived.with, derived.preset = slices.Concat(whole(keyVals), l.with), l.levelOf(keyVals)
	return &derived
}

// WithIncreasedCallerDepth implements micrologger.Logger.
func (l *logger) WithIncreasedCallerDepth() micrologger.Logger {
	derived := *l
	derived.depth++
	return &derived
}

// say writes a message for a method of the logger.
func (l *logger) say(ctx context.Context, level slog.Level, like string, keyVals ...any) {
	var pcs [1]uintptr
	runtime.Callers(3+l.depth, pcs[:]) // Callers itself, say and the method.
	l.put(ctx, level, pcs[0], like, slices.Concat(whole(keyVals), l.with))
}

// whole returns pairs of which the last one has a value.
func whole(keyVals []any) []any {
	if len(keyVals)%2 == 0 {
		return keyVals
	}
	return append(slices.Clip(keyVals), "(MISSING)")
}

// levelOf returns the level that the pairs set, or else that of With.
func (l *logger) levelOf(keyVals []any) slog.Level {
	for i := 1; i < len(keyVals); i += 2 {
		if keyVals[i-1] == keyLevel {
			level, _ := levelOf(keyVals[i])
			return level
		}
	}
	return l.preset
}

// messageOf returns the message among the pairs, and nothing if it has none that is a text.
func messageOf(keyVals []any) string {
	for i := 1; i < len(keyVals); i += 2 {
		if keyVals[i-1] == keyMessage {
			text, _ := keyVals[i].(string)
			return text
		}
	}
	return ""
}
