package main

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// slice is one of several equal parts of the tests. The zero value is all of them.
type slice struct{ part, of int }

// String is how the slice is written on the command line.
func (s *slice) String() string {
	if s.of == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.part, s.of)
}

// Set reads a slice.
func (s *slice) Set(text string) error {
	if text == "" {
		*s = slice{}
		return nil
	}
	if n, err := fmt.Sscanf(text, "%d/%d", &s.part, &s.of); n != 2 || err != nil || s.part < 1 || s.part > s.of || s.String() != text {
		return fmt.Errorf("%q is no slice: 2/4 is the second of four", text)
	}
	return nil
}

var testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)\(`)

// take returns a pattern of the slice's tests, empty for all, and the packages that have any, those first that take longest.
func (s *slice) take(packages []goPackage) (tests string, with []goPackage, err error) {
	names := map[string][]goPackage{}
	for _, p := range packages {
		for _, file := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
			text, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err != nil {
				return "", nil, fmt.Errorf("look for tests: %w", err)
			}
			for _, match := range testFunction.FindAllSubmatch(text, -1) {
				if name := string(match[1]); name != "TestMain" {
					names[name] = append(names[name], p)
				}
			}
		}
	}
	mine := slices.Sorted(maps.Keys(names))
	if s.of > 0 {
		mine = s.mine(mine)
		tests = "^(" + strings.Join(mine, "|") + ")$"
	}
	has := map[string]bool{}
	for _, name := range mine {
		for _, p := range names[name] {
			has[p.ImportPath] = true
		}
	}
	with = slices.DeleteFunc(slices.Clone(packages), func(p goPackage) bool { return !has[p.ImportPath] })
	longestFirst(with, mine)
	return tests, with, nil
}

// mine are those of all names, in their order, that belong to the slice. The longest ones are dealt out one by one, each to the slice
// that has least so far. For the others the name alone decides, so that a new one moves no other.
func (s *slice) mine(names []string) []string {
	took := map[string]time.Duration{}
	for _, test := range longest() {
		took[test.name] += test.took
	}
	long := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return took[name] == 0 })
	slices.SortStableFunc(long, func(a, b string) int { return cmp.Compare(took[b], took[a]) })
	in := map[string]int{}
	sums := make([]time.Duration, s.of)
	for _, name := range long {
		least := slices.Index(sums, slices.Min(sums))
		in[name] = least
		sums[least] += took[name]
	}
	var mine []string
	for _, name := range names {
		part, dealt := in[name]
		if !dealt {
			h := fnv.New32a()
			_, _ = h.Write([]byte(name))
			part = int(h.Sum32() % uint32(s.of)) //nolint:gosec // a small number
		}
		if part == s.part-1 {
			mine = append(mine, name)
		}
	}
	return mine
}
