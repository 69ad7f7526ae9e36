package logging

import (
	"context"
	"fmt"

	"github.com/giantswarm/micrologger"
	"github.com/go-logr/logr"
)

// maxVerbosity is the highest V of logr that is written. Above it, client-go writes the headers and the bodies of its
// requests.
const maxVerbosity = 4

// Logr returns a logr.Logger whose messages go to logger: V(0) as info, V(1) to V(4) as debug, what is above never.
// Names are joined with slashes under the key "logger".
func Logr(logger micrologger.Logger) logr.Logger { return logr.New(&logrSink{logger: logger}) }

// FromLogr returns a micrologger whose messages go to logger, such as that of a manager of controller-runtime: those of level error as errors,
// those of level debug as V(1), and all others as info.
func FromLogr(logger logr.Logger) micrologger.Logger {
	return &pairLogger{write: func(pairs []any) {
		level, message, stack, rest := split(pairs)
		if stack != "" {
			rest = append(rest, keyStack, stack)
		}
		switch severityOf(level) {
		case failure:
			logger.Error(nil, message, rest...)
		case debug:
			logger.V(1).Info(message, rest...)
		default:
			logger.Info(message, rest...)
		}
	}}
}

type logrSink struct {
	logger micrologger.Logger
	name   string
}

// Init implements logr.LogSink. The depth of the caller is not needed.
func (s *logrSink) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink.
func (s *logrSink) Enabled(level int) bool {
	return level <= maxVerbosity && enabled(s.logger, fromVerbosity(level))
}

// Info implements logr.LogSink.
func (s *logrSink) Info(level int, message string, keyVals ...any) {
	s.log(fromVerbosity(level), message, keyVals)
}

// Error implements logr.LogSink.
func (s *logrSink) Error(err error, message string, keyVals ...any) {
	if err != nil {
		keyVals = append([]any{"error", err}, keyVals...)
	}
	s.log(failure, message, keyVals)
}

// WithValues implements logr.LogSink.
func (s *logrSink) WithValues(keyVals ...any) logr.LogSink {
	return &logrSink{logger: s.logger.With(ownPairs(keyVals)...), name: s.name}
}

// WithName implements logr.LogSink.
func (s *logrSink) WithName(name string) logr.LogSink {
	if s.name != "" {
		name = s.name + "/" + name
	}
	return &logrSink{logger: s.logger, name: name}
}

func (s *logrSink) log(severity severity, message string, keyVals []any) {
	pairs := []any{keyLevel, severity.level(), keyMessage, message}
	if s.name != "" {
		pairs = append(pairs, "logger", s.name)
	}
	s.logger.LogCtx(context.Background(), append(pairs, ownPairs(keyVals)...)...)
}

// ownPairs returns pairs that can be written and overwrite none of the stream's keys.
func ownPairs(keyVals []any) []any {
	pairs := make([]any, 0, len(keyVals)+1)
	for i, v := range keyVals {
		if i%2 == 0 {
			pairs = append(pairs, ownKey(fmt.Sprint(v)))
			continue
		}
		pairs = append(pairs, harmless(v))
	}
	if len(pairs)%2 != 0 {
		pairs = append(pairs, "(MISSING)")
	}
	return pairs
}

func fromVerbosity(level int) severity {
	if level > 0 {
		return debug
	}
	return info
}
