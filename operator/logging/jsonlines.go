package logging

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/giantswarm/micrologger"
	kitlog "github.com/go-kit/log"
)

// jsonLines is micrologger with a caller that is right although others stand between it and the code that logs.
type jsonLines struct {
	micrologger.Logger
	depth int
	// with are the pairs that With gave to all messages.
	with []any
}

// LogCtx implements micrologger.Logger. micrologger itself would overwrite what the message says with what the context carries.
func (j *jsonLines) LogCtx(ctx context.Context, keyVals ...any) {
	j.Log(append(carried(ctx, slices.Concat(keyVals, j.with)), keyVals...)...)
}

// With implements micrologger.Logger.
func (j *jsonLines) With(keyVals ...any) micrologger.Logger {
	return &jsonLines{Logger: j.Logger.With(keyVals...), depth: j.depth, with: slices.Concat(j.with, keyVals)}
}

// WithIncreasedCallerDepth implements micrologger.Logger.
func (j *jsonLines) WithIncreasedCallerDepth() micrologger.Logger {
	depth := j.depth + 1
	return &jsonLines{Logger: j.Logger.With(keyCaller, kitlog.Valuer(callerAbove(depth))), depth: depth, with: j.with}
}

// between are the packages that pass messages on and never are the caller.
var between = []string{
	"github.com/operatorkit/operatorkit/operator/logging",
	"github.com/giantswarm/micrologger",
	"github.com/go-kit/log",
	"github.com/go-logr/logr",
	"k8s.io/klog/v2",
	"log/slog",
}

// callerAbove returns a function that tells who logs: the first function outside of the packages between, and depth
// callers above it. The form is micrologger's: import path, file and line.
func callerAbove(depth int) func() any {
	return func() any {
		pcs := make([]uintptr, 32)
		// The first two are runtime.Callers and this function.
		frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
		left := depth
		for {
			frame, more := frames.Next()
			pkg := packageOf(frame.Function)
			if !slices.Contains(between, pkg) {
				if left == 0 || !more {
					return fmt.Sprintf("%s/%s:%d", pkg, filepath.Base(frame.File), frame.Line)
				}
				left--
			}
			if !more {
				return "unknown"
			}
		}
	}
}

// packageOf returns the import path in the full name of a function.
func packageOf(function string) string {
	dir, name := "", function
	if i := strings.LastIndex(function, "/"); i >= 0 {
		dir, name = function[:i+1], function[i+1:]
	}
	name, _, _ = strings.Cut(name, ".")
	return dir + name
}
