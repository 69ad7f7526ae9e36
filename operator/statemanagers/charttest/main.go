package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// Exit codes.
const (
	exitEqual = iota
	// exitDiffers says that a cell of the table is not equal, or that something in the folder was not understood.
	exitDiffers
	// exitFailed says that nothing was tried, or not everything.
	exitFailed
)

func main() {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// options are what the command line says.
type options struct {
	config
	folder, logFile string
	names           *regexp.Regexp
}

// command runs the command line and returns its exit code.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseArgs(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitEqual
	}
	equal := false
	if err == nil {
		equal, err = o.run(ctx, stdout)
	}
	switch {
	case err != nil:
		fmt.Fprintf(stderr, "charttest: %v\n", err)
		return exitFailed
	case !equal:
		return exitDiffers
	}
	return exitEqual
}

func parseArgs(args []string, stderr io.Writer) (options, error) {
	o := options{config: config{log: io.Discard, progress: stderr, mode: v1alpha1.SyncModeContinuousWithDriftDetection}}
	flags := flag.NewFlagSet("charttest", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintf(stderr, "charttest [flags] folder\n\ncompares what the native state manager makes of charts and kustomizations with what Helm and kubectl do.\n\n")
		flags.PrintDefaults()
	}
	pattern := flags.String("run", "", "only those whose names match this regular expression (default: all)")
	flags.StringVar(&o.logFile, "log", "", "write what the operator logs to this file")
	flags.DurationVar(&o.timeout, "timeout", 3*time.Minute, "how long a step may take")
	flags.DurationVar(&o.settle, "settle", 5*time.Second, "for how long nothing may happen until a step is over")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() != 1 {
		return o, errors.New("name one folder with charts and kustomizations: make test-charts CHARTS=DIR")
	}
	o.folder = flags.Arg(0)
	var err error
	if o.names, err = regexp.Compile(*pattern); err != nil {
		return o, fmt.Errorf("-run: %w", err)
	}
	return o, nil
}

// run tries all subjects of the folder whose names match, and writes the table. It tells whether all of it is equal.
func (o options) run(ctx context.Context, stdout io.Writer) (equal bool, err error) {
	found, err := find(o.folder)
	if err != nil {
		return false, err
	}
	subjects := slices.DeleteFunc(found, func(s *subject) bool { return !o.names.MatchString(s.name) })
	if len(subjects) == 0 {
		return false, fmt.Errorf("nothing in %s has a name that matches %q", o.folder, o.names)
	}
	if o.logFile != "" {
		file, err := os.Create(o.logFile)
		if err != nil {
			return false, err
		}
		defer func() { _ = file.Close() }()
		o.log = file
	}
	w, err := newWorld(ctx, o.config)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, w.close(ctx)) }()
	equal = true
	var rows []*row
	for _, s := range subjects {
		r := &row{subject: s}
		if s.fault == nil {
			began := time.Now()
			fmt.Fprintf(o.progress, "%s %s …\n", s.name, versionsOf(s))
			if r.outcomes, err = w.try(ctx, s); err != nil {
				return false, errors.Join(fmt.Errorf("try %s: %w", s.name, err), writeTable(stdout, rows))
			}
			fmt.Fprintf(o.progress, "%s took %s\n", s.name, time.Since(began).Round(time.Second))
		}
		rows = append(rows, r)
		equal = equal && r.isEqual()
	}
	return equal, writeTable(stdout, rows)
}
