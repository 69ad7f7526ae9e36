package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"gotest.tools/gotestsum/testjson"
)

// leftToAll begins the reason of a test that "make test" leaves to "make test-all".
const leftToAll = "left to make test-all"

// report says what failed, what was skipped and what was slow. It returns an error when a test failed or, where nothing may be skipped,
// was skipped.
func report(out io.Writer, done *testjson.Execution, slow time.Duration, nothingSkipped bool) error {
	testjson.PrintSummary(out, done, testjson.SummarizeFailed|testjson.SummarizeErrors|testjson.SummarizeOutput)

	if tests := slowTests(done, slow); len(tests) > 0 {
		fmt.Fprintf(out, "\nWarning: these tests took longer than %s:\n", slow)
		for _, test := range tests {
			fmt.Fprintf(out, "  %6.1fs  %s %s\n", test.Elapsed.Seconds(), testjson.RelativePackagePath(test.Package), test.Test)
		}
	}
	left, skipped := 0, []string{}
	for _, test := range done.Skipped() {
		reason := reasonOf(done, test)
		if strings.Contains(reason, leftToAll) {
			left++
			continue
		}
		skipped = append(skipped, fmt.Sprintf("  %s %s: %s", testjson.RelativePackagePath(test.Package), test.Test, reason))
	}
	if len(skipped) > 0 {
		fmt.Fprintf(out, "\nSkipped:\n%s\n", strings.Join(skipped, "\n"))
	}
	if left > 0 {
		fmt.Fprintf(out, "\n%d more are left to make test-all.\n", left)
	}
	failed := len(testjson.FilterFailedUnique(done.Failed()))
	fmt.Fprintf(out, "\n%d passed, %d failed, %d skipped\n", done.Total()-len(done.Failed())-len(done.Skipped()), failed, len(skipped))

	broken := 0
	for _, name := range done.Packages() {
		if done.Package(name).Result() == testjson.ActionFail {
			broken++
		}
	}
	switch {
	case failed > 0 || broken > 0:
		return fmt.Errorf("%d tests in %d packages failed", failed, broken)
	case nothingSkipped && len(skipped) > 0:
		return errors.New("tests were skipped, which CI=true does not allow: install what they need, see above")
	}
	return nil
}

// slowTests are the tests that took longer, the slowest first.
func slowTests(done *testjson.Execution, slow time.Duration) []testjson.TestCase {
	var tests []testjson.TestCase
	for _, name := range done.Packages() {
		for _, test := range done.Package(name).TestCases() {
			if test.Elapsed > slow && !test.Test.IsSubTest() {
				tests = append(tests, test)
			}
		}
	}
	slices.SortFunc(tests, func(a, b testjson.TestCase) int { return cmp.Compare(b.Elapsed, a.Elapsed) })
	return tests
}

// reasonOf is what a skipped test said, without the place.
func reasonOf(done *testjson.Execution, test testjson.TestCase) string {
	var said []string
	for _, line := range done.OutputLines(test) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "===") || strings.HasPrefix(line, "---") {
			continue
		}
		said = append(said, line)
	}
	return strings.Join(said, " ")
}
