package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// defaultRounds makes the whole run take about ten minutes on two cores.
const defaultRounds = 9

func main() {
	testing.Init()
	if err := flag.Set("test.benchtime", "1x"); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// options are what the command line says.
type options struct {
	rows   *regexp.Regexp
	rounds int
	json   string
	// long is whether long rows are measured when none are picked.
	long bool
}

// command runs the command line and returns its exit code.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "bench: %v\n", err)
		return 2
	}
	e := &environment{
		stopwatch: stopwatch{rounds: o.rounds, progress: stderr},
		sizes:     fullSizes(),
		samples:   map[string]series{},
	}
	if err := measureRows(ctx, e, o, stdout); err != nil {
		fmt.Fprintf(stderr, "bench: %v\n", err)
		return 1
	}
	return 0
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	pattern := flags.String("run", "", "only rows that match this regular expression: "+strings.Join(rowNames(), ", ")+" (default: all)")
	flags.BoolVar(&o.long, "long", false, "also rows that take minutes: "+strings.Join(longRows(), ", "))
	flags.IntVar(&o.rounds, "rounds", defaultRounds, "how often each contender is measured")
	flags.StringVar(&o.json, "json", "", "also write the table and the figures of every round to this file")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.rounds < 1 {
		return o, fmt.Errorf("-rounds must be at least 1, is %d", o.rounds)
	}
	var err error
	if o.rows, err = regexp.Compile(*pattern); err != nil {
		return o, fmt.Errorf("-run: %w", err)
	}
	return o, nil
}

// measureRows measures the chosen rows, on a cluster that it opens and closes, and prints the table.
func measureRows(ctx context.Context, e *environment, o options, stdout io.Writer) (err error) {
	if e.cluster, err = newCluster(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.cluster.close(ctx)) }()

	var lines []line
	for _, r := range rows() {
		if !o.rows.MatchString(r.name) || r.long && !o.long && o.rows.String() == "" {
			continue
		}
		of, err := r.run(ctx, e)
		if err != nil {
			return err
		}
		lines = append(lines, of...)
	}
	if len(lines) == 0 {
		return fmt.Errorf("no row matches %q", o.rows)
	}
	fmt.Fprintf(stdout, "\n%s, %d processors, medians of %d rounds\n\n", runtime.Version(), runtime.GOMAXPROCS(0), e.rounds)
	if err := printTable(stdout, lines); err != nil {
		return err
	}
	if o.json == "" {
		return nil
	}
	return writeJSON(o.json, lines, e.samples)
}

func writeJSON(file string, lines []line, samples map[string]series) error {
	data, err := json.MarshalIndent(struct {
		Lines   []line            `json:"lines"`
		Samples map[string]series `json:"samples"`
	}{lines, samples}, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the results: %w", err)
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}
