package informer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/giantswarm/micrologger"
	"github.com/go-logr/logr"
)

// maxVerbosity is the highest level of client-go's messages that is worth a line.
const maxVerbosity = 1

// logSink passes the messages of client-go on to a micrologger. Values that could contain an object are replaced by
// their type, because an object may be a Secret.
type logSink struct{ logger micrologger.Logger }

func newLogSink(logger micrologger.Logger) logr.LogSink { return logSink{logger} }

func (s logSink) Init(logr.RuntimeInfo) {}

func (s logSink) Enabled(level int) bool { return level <= maxVerbosity }

func (s logSink) Info(_ int, message string, keysAndValues ...any) {
	s.logger.With(redact(keysAndValues)...).Debug(context.Background(), message)
}

func (s logSink) Error(err error, message string, keysAndValues ...any) {
	logger := s.logger.With(redact(keysAndValues)...)
	if noted := (notedError{}); errors.As(err, &noted) {
		logger.Debugf(context.Background(), "%s: %s", message, err)
		return
	}
	logger.Error(context.Background(), err, message)
}

func (s logSink) WithValues(keysAndValues ...any) logr.LogSink {
	return logSink{s.logger.With(redact(keysAndValues)...)}
}

// WithName changes nothing: the logger knows the source's name already.
func (s logSink) WithName(string) logr.LogSink { return s }

// redact keeps values of plain types and errors, and replaces the others by the name of their type.
func redact(keysAndValues []any) []any {
	safe := make([]any, len(keysAndValues))
	for i, v := range keysAndValues {
		switch v := v.(type) {
		case string, bool, int, int64, float64, time.Duration:
			safe[i] = v
		case error:
			safe[i] = v.Error()
		default:
			safe[i] = fmt.Sprintf("%T", v)
		}
	}
	return safe
}
