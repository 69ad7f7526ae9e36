// Command suite runs the project's tests, and says what they took:
//
//	suite [-short] [-race './framework/... !./framework/plan'] [-slice 2/4] [-p 3] [-timeout 45m] [package ...]
//	suite -flaky 30m [-load 2] [package ...]
//	suite -names COMMIT
//
// It compiles what the tests import, so that they need not share the processors with compilers, and says how far that is. Then it
// runs "go test" twice, first with the race detector for the packages that -race names, then without it for the others, and shows
// both as one. At the end it lists the tests that took longer than -slow, and those that were skipped with what they need. With the
// environment variable CI=true a skipped test is a failure. Tests that leave themselves to "make test-all" are only counted: their reason
// for being skipped begins with "left to make test-all".
//
// With -flaky it runs the tests again and again for a time, beside a load that keeps every core busy, and says what failed how often.
//
// With -names it compares the names of the tests in the sources with those of a commit.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// options are what the command line says.
type options struct {
	short    bool
	race     string
	slice    slice
	parallel int
	timeout  time.Duration
	fresh    bool
	slow     time.Duration
	events   string
	flaky    time.Duration
	load     int
	names    string
	packages []string
}

func main() {
	o := parse(os.Args[1:])
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	switch {
	case o.names != "":
		return compareNames(ctx, os.Stdout, o.names)
	case o.flaky > 0:
		return findFlaky(ctx, os.Stdout, o)
	default:
		return runOnce(ctx, os.Stdout, o)
	}
}

func parse(args []string) options {
	var o options
	flags := flag.NewFlagSet("suite", flag.ExitOnError)
	flags.BoolVar(&o.short, "short", false, "samples of what test-all runs whole")
	flags.StringVar(&o.race, "race", "", "packages to run with the race detector, separated by spaces; a later !./package is not")
	flags.Var(&o.slice, "slice", "run a part of the tests only, such as 2/4: always the same ones")
	flags.IntVar(&o.parallel, "p", 0, "packages at once; 0 is two more than there are processors with -short, as tests of servers wait, and else one more")
	flags.DurationVar(&o.timeout, "timeout", 0, "when to give up on the tests of a package; 0 is 30m with -short, and else 2h: slow machines are slow")
	flags.BoolVar(&o.fresh, "fresh", false, "take no result from Go's cache of test results")
	flags.DurationVar(&o.slow, "slow", 20*time.Second, "warn of tests that take longer")
	flags.StringVar(&o.events, "events", "", "write what go test -json says to this file")
	flags.DurationVar(&o.flaky, "flaky", 0, "run the tests again and again for so long, beside a load")
	flags.IntVar(&o.load, "load", runtime.NumCPU(), "with -flaky: how many cores to keep busy; 0 where other work does")
	flags.StringVar(&o.names, "names", "", "compare the names of tests with those of this commit")
	_ = flags.Parse(args) // ends the program when it can't
	if o.timeout == 0 {
		o.timeout = 2 * time.Hour
		if o.short {
			o.timeout = 30 * time.Minute
		}
	}
	if o.parallel == 0 {
		o.parallel = runtime.NumCPU() + 1
		if o.short {
			o.parallel++
		}
	}
	o.packages = flags.Args()
	if len(o.packages) == 0 {
		o.packages = []string{"./..."}
	}
	return o
}
