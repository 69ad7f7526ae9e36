package main

import (
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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

// take returns a pattern of the slice's tests, empty for all, and the packages that have any.
func (s *slice) take(packages []goPackage) (tests string, with []goPackage, err error) {
	if s.of == 0 {
		return "", packages, nil
	}
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
	mine := s.mine(slices.Sorted(maps.Keys(names)))
	has := map[string]bool{}
	for _, name := range mine {
		for _, p := range names[name] {
			has[p.ImportPath] = true
		}
	}
	with = slices.DeleteFunc(slices.Clone(packages), func(p goPackage) bool { return !has[p.ImportPath] })
	return "^(" + strings.Join(mine, "|") + ")$", with, nil
}

// mine are those of all names, in their order, that belong to the slice. Crash sweeps take the most time by far, and are dealt out one by
// one. For the others the name alone decides, so that a new one moves no other.
func (s *slice) mine(names []string) []string {
	var mine []string
	sweeps := 0
	for _, name := range names {
		h := fnv.New32a()
		_, _ = h.Write([]byte(name))
		in := int(h.Sum32() % uint32(s.of)) //nolint:gosec // a small number
		if strings.Contains(name, "Crash") {
			in = sweeps % s.of
			sweeps++
		}
		if in == s.part-1 {
			mine = append(mine, name)
		}
	}
	return mine
}
