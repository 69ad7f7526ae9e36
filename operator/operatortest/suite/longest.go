package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"
)

// longestText has the tests that take longest with all their cases: lines of the warning with which "make test-all" ends.
//
//go:embed longest.txt
var longestText string

// longTest is a test that takes long.
type longTest struct {
	took      time.Duration
	dir, name string
}

// longest are the tests that take longest.
func longest() []longTest {
	var tests []longTest
	for line := range strings.Lines(longestText) {
		var test longTest
		var seconds float64
		if n, _ := fmt.Sscanf(line, "%fs %s %s", &seconds, &test.dir, &test.name); n == 3 {
			test.took = time.Duration(seconds * float64(time.Second))
			tests = append(tests, test)
		}
	}
	return tests
}

// longestFirst orders packages by what the longest of these tests take in them. What begins last is then short, and no processor waits
// for it in the end.
func longestFirst(packages []goPackage, tests []string) {
	took := map[string]time.Duration{}
	for _, test := range longest() {
		for _, p := range packages {
			if strings.HasSuffix(p.ImportPath, "/"+test.dir) && slices.Contains(tests, test.name) {
				took[p.ImportPath] += test.took
			}
		}
	}
	slices.SortStableFunc(packages, func(a, b goPackage) int { return cmp.Compare(took[b.ImportPath], took[a.ImportPath]) })
}
