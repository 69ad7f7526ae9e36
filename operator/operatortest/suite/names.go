package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// compareNames says which tests the commit had and the work tree has not, and the other way round, by their names without their
// packages: a test that moved is none of either.
func compareNames(ctx context.Context, out io.Writer, commit string) error {
	before, err := namesOf(ctx, commit)
	if err != nil {
		return err
	}
	now, err := namesOf(ctx, "")
	if err != nil {
		return err
	}
	gone, added := missing(before, now), missing(now, before)
	fmt.Fprintf(out, "%d tests at %s, %d now: %d are gone, %d are new\n", total(before), commit, total(now), len(gone), len(added))
	for _, name := range gone {
		fmt.Fprintln(out, "  gone:", name)
	}
	for _, name := range added {
		fmt.Fprintln(out, "  new: ", name)
	}
	return nil
}

// namesOf counts the tests of each name in a commit or, without one, in the work tree. Scripts are tests, too.
func namesOf(ctx context.Context, commit string) (map[string]int, error) {
	const function = `^func (Test|Fuzz|Example|Benchmark)[A-Za-z0-9_]*\(`
	search := []string{"grep", "-h", "-o", "-E", "--untracked", "-e", function}
	list := []string{"ls-files", "--cached", "--others", "--exclude-standard"}
	if commit != "" {
		search = []string{"grep", "-h", "-o", "-E", "-e", function, commit}
		list = []string{"ls-tree", "-r", "--name-only", commit}
	}
	functions, err := git(ctx, append(search, "--", "*_test.go")...)
	if err != nil {
		return nil, err
	}
	files, err := git(ctx, list...)
	if err != nil {
		return nil, err
	}
	names := map[string]int{}
	for line := range strings.Lines(functions) {
		names[strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "func "), "(")]++
	}
	for _, file := range strings.Fields(files) {
		_, script, ok := strings.Cut(file, "/testdata/")
		if !ok || !strings.HasSuffix(script, ".txtar") {
			continue
		}
		if _, err := os.Stat(file); err != nil && commit == "" {
			continue // the index still has it
		}
		names["script "+script]++
	}
	return names, nil
}

func git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...) //nolint:gosec // the caller's commit
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err == nil || errors.As(err, &exit) && exit.ExitCode() == 1 { // grep found nothing
		return string(out), nil
	}
	return "", fmt.Errorf("git %s: %w", args[0], err)
}

// missing lists what has fewer tests of a name than there were.
func missing(from, in map[string]int) []string {
	var names []string
	for name, n := range from {
		for range n - in[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func total(names map[string]int) int {
	n := 0
	for _, count := range names {
		n += count
	}
	return n
}
