package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"gotest.tools/gotestsum/testjson"
)

// findFlaky runs the tests again and again, beside a load, until the time is over. A run that has begun is brought to its end.
func findFlaky(ctx context.Context, out io.Writer, o options) error {
	commands, err := commands(ctx, o)
	if err != nil {
		return err
	}
	if err := compile(ctx, commands); err != nil {
		return err
	}
	loadCtx, quiet := context.WithCancel(ctx)
	defer quiet()
	for range o.load {
		go burn(loadCtx)
	}
	failures, runs := map[string]int{}, 0
	for end := time.Now().Add(o.flaky); time.Now().Before(end) && ctx.Err() == nil; {
		runs++
		fmt.Fprintf(out, "run %d, %s to go\n", runs, time.Until(end).Round(time.Second))
		done, err := execute(ctx, out, io.Discard, commands)
		if err != nil {
			return err
		}
		testjson.PrintSummary(out, done, testjson.SummarizeFailed|testjson.SummarizeErrors|testjson.SummarizeOutput)
		for _, test := range testjson.FilterFailedUnique(done.Failed()) {
			failures[testjson.RelativePackagePath(test.Package)+" "+test.Test.Name()]++
		}
	}
	fmt.Fprintf(out, "\n%d runs beside a load for %d of %d cores\n", runs, o.load, runtime.NumCPU())
	tests := slices.Collect(maps.Keys(failures))
	slices.SortFunc(tests, func(a, b string) int { return cmp.Or(cmp.Compare(failures[b], failures[a]), strings.Compare(a, b)) })
	for _, test := range tests {
		fmt.Fprintf(out, "  failed %d of %d: %s\n", failures[test], runs, test)
	}
	if len(tests) > 0 {
		return errors.New("some tests failed in some runs: find out why, none may")
	}
	return ctx.Err()
}

// burn keeps a core busy.
func burn(ctx context.Context) {
	for n := 0; ; n++ {
		if n%1_000_000 == 0 && ctx.Err() != nil {
			return
		}
	}
}
