package logging

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/giantswarm/micrologger"
)

// pairLogger is a micrologger of which every message is a list of keys and values.
type pairLogger struct {
	write func(pairs []any)
	// with are the pairs that With gave to all messages.
	with []any
}

// Debug implements micrologger.Logger.
func (p *pairLogger) Debug(ctx context.Context, message string) {
	p.LogCtx(ctx, keyLevel, string(LevelDebug), keyMessage, message)
}

// Debugf implements micrologger.Logger.
func (p *pairLogger) Debugf(ctx context.Context, format string, params ...any) {
	p.Debug(ctx, fmt.Sprintf(format, params...))
}

// Error implements micrologger.Logger.
func (p *pairLogger) Error(ctx context.Context, err error, message string) {
	if err == nil {
		err = errors.New("nil")
	}
	p.LogCtx(ctx, keyLevel, string(LevelError), keyMessage, message, "error", err)
}

// Errorf implements micrologger.Logger.
func (p *pairLogger) Errorf(ctx context.Context, err error, format string, params ...any) {
	p.Error(ctx, err, fmt.Sprintf(format, params...))
}

// Log implements micrologger.Logger.
func (p *pairLogger) Log(keyVals ...any) {
	p.write(slices.Concat(keyVals, p.with))
}

// LogCtx implements micrologger.Logger.
func (p *pairLogger) LogCtx(ctx context.Context, keyVals ...any) {
	pairs := slices.Concat(keyVals, p.with)
	p.write(append(pairs, carried(ctx, pairs)...))
}

// With implements micrologger.Logger.
func (p *pairLogger) With(keyVals ...any) micrologger.Logger {
	if len(keyVals)%2 != 0 {
		keyVals = append(slices.Clone(keyVals), "(MISSING)")
	}
	return &pairLogger{write: p.write, with: slices.Concat(p.with, keyVals)}
}

// WithIncreasedCallerDepth implements micrologger.Logger. The caller is not told.
func (p *pairLogger) WithIncreasedCallerDepth() micrologger.Logger { return p }

// split takes level, message and stack out of pairs. Of one that is given twice the first counts.
func split(pairs []any) (level, message, stack string, rest []any) {
	if len(pairs)%2 != 0 {
		pairs = append(pairs, "(MISSING)")
	}
	rest = make([]any, 0, len(pairs))
	for i := 0; i < len(pairs); i += 2 {
		value := &message
		switch pairs[i] {
		case keyLevel:
			value = &level
		case keyMessage:
		case keyStack:
			value = &stack
		default:
			rest = append(rest, pairs[i], pairs[i+1])
			continue
		}
		if *value == "" {
			*value = format(pairs[i+1])
		}
	}
	return level, message, stack, rest
}
