package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"gotest.tools/gotestsum/testjson"

	"github.com/operatorkit/operatorkit/operator/operatortest/internal/gobuild"
)

// runVariable is another one in each run. A test that reads it is never taken from Go's cache of test results: one that looks at things
// of which the cache can't know.
const runVariable = "SUITE_RUN"

// raceFlag has go compile and link with the race detector.
const raceFlag = "-race"

// goPackage is what "go list -json" says of a package.
type goPackage struct {
	ImportPath, Dir           string
	TestGoFiles, XTestGoFiles []string
}

// list returns the packages of the patterns that have tests.
func list(ctx context.Context, patterns []string) ([]goPackage, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles"}, patterns...)...) //nolint:gosec // packages that the caller names
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages %q: %w", patterns, err)
	}
	var packages []goPackage
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the output of go list: %w", err)
		}
		if len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 {
			packages = append(packages, p)
		}
	}
}

// raced are the packages that run with the race detector: those of all patterns but the ones that begin with "!".
func raced(ctx context.Context, patterns string) (map[string]bool, error) {
	raced := map[string]bool{}
	for _, pattern := range strings.Fields(patterns) {
		pattern, isNot := strings.CutPrefix(pattern, "!")
		packages, err := list(ctx, []string{pattern})
		if err != nil {
			return nil, err
		}
		for _, p := range packages {
			raced[p.ImportPath] = !isNot
		}
	}
	return raced, nil
}

// command is a run of "go test".
type command struct {
	args, packages []string
	race           bool
}

// commands are the runs of "go test" that the options ask for.
func commands(ctx context.Context, o options) ([]command, error) {
	packages, err := list(ctx, o.packages)
	if err != nil {
		return nil, err
	}
	if len(packages) == 0 {
		return nil, fmt.Errorf("there are no tests in %q", o.packages)
	}
	raced, err := raced(ctx, o.race)
	if err != nil {
		return nil, err
	}
	tests, packages, err := o.slice.take(packages)
	if err != nil {
		return nil, err
	}
	groups := map[bool][]string{}
	for _, p := range packages {
		race := raced[p.ImportPath]
		groups[race] = append(groups[race], p.ImportPath)
	}
	var commands []command
	for _, race := range []bool{true, false} {
		if len(groups[race]) == 0 {
			continue
		}
		// The linter vets already, and nobody debugs a test's binary: linking it without tables for debuggers takes half of the time.
		args := []string{"test", "-json", "-vet=off", "-ldflags=-s -w", "-p", strconv.Itoa(o.parallel), "-timeout", o.timeout.String()}
		if race {
			args = append(args, raceFlag)
		}
		if o.short {
			args = append(args, "-short")
		}
		if o.fresh || o.flaky > 0 {
			args = append(args, "-count=1")
		}
		if tests != "" {
			args = append(args, "-run", tests)
		}
		commands = append(commands, command{args, groups[race], race})
	}
	return commands, nil
}

// runOnce runs the tests and reports.
func runOnce(ctx context.Context, out io.Writer, o options) error {
	commands, err := commands(ctx, o)
	if err != nil {
		return err
	}
	events := io.Discard
	if o.events != "" {
		file, err := os.Create(o.events)
		if err != nil {
			return fmt.Errorf("make the file of events: %w", err)
		}
		defer func() { _ = file.Close() }()
		events = file
	}
	if err := compile(ctx, commands); err != nil {
		return err
	}
	done, err := execute(ctx, out, events, commands)
	if err != nil {
		return err
	}
	return report(out, done, o.slow, os.Getenv("CI") == "true")
}

// compile compiles what the tests of the commands import, before the first of them begins: where tests share the processors with compilers,
// leases and connections of tests run out.
func compile(ctx context.Context, commands []command) error {
	for _, c := range commands {
		var mode []string
		if c.race {
			mode = []string{raceFlag}
		}
		// What is for one test alone is compiled with it, and programs are linked with it.
		const imported = `{{if and (not .ForTest) (ne .Name "main") (or .GoFiles .CgoFiles)}}{{.ImportPath}}{{end}}`
		list := exec.CommandContext(ctx, "go", slices.Concat([]string{"list", "-deps", "-test", "-f", imported}, mode, c.packages)...) //nolint:gosec // packages that the caller names
		list.Stderr = os.Stderr
		out, err := list.Output()
		if err != nil {
			return fmt.Errorf("list what the tests import: %w", err)
		}
		packages := strings.Fields(string(out))
		build := exec.CommandContext(ctx, "go", slices.Concat([]string{"build", "-v"}, mode, packages)...) //nolint:gosec // packages that the caller's import
		if err := gobuild.Run(build, "what the tests import", len(packages), os.Stderr); err != nil {
			return err
		}
	}
	return nil
}

// execute runs the commands one after the other, also when one fails, and shows how the packages fare.
func execute(ctx context.Context, out, events io.Writer, commands []command) (*testjson.Execution, error) {
	reader, writer := io.Pipe()
	errs := make(chan error, 1)
	go func() {
		var failed error
		for _, c := range commands {
			cmd := exec.CommandContext(ctx, "go", slices.Concat(c.args, c.packages)...) //nolint:gosec // made of the caller's packages
			cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", runVariable, time.Now().UnixNano()))
			cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
			cmd.WaitDelay = time.Minute
			cmd.Stdout, cmd.Stderr = writer, os.Stderr
			err := cmd.Run()
			if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 1 && ctx.Err() == nil {
				continue // a test has failed, which is in the report
			}
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("run the tests: %w", err))
			}
		}
		errs <- failed
		_ = writer.Close()
	}()
	shown := handler{testjson.NewEventFormatter(out, "pkgname-and-test-fails", testjson.FormatOptions{HideEmptyPackages: true}), out}
	done, err := testjson.ScanTestOutput(testjson.ScanConfig{Stdout: io.TeeReader(reader, events), Handler: shown, IgnoreNonJSONOutputLines: true})
	_ = reader.CloseWithError(err)
	return done, errors.Join(err, <-errs)
}

// handler shows events.
type handler struct {
	testjson.EventFormatter
	out io.Writer
}

func (h handler) Event(event testjson.TestEvent, done *testjson.Execution) error {
	if event.Action == "build-output" {
		_, err := io.WriteString(h.out, event.Output)
		return err
	}
	return h.Format(event, done)
}

func (h handler) Err(text string) error {
	_, err := fmt.Fprintln(h.out, text)
	return err
}
