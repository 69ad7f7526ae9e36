package main

import (
	"fmt"
	"hash/fnv"
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

// take returns a pattern of the slice's tests, empty for all, and the packages that have any. Which slice a test belongs to depends on
// its name alone, so that a new one moves no other.
func (s *slice) take(packages []goPackage) (tests string, with []goPackage, err error) {
	if s.of == 0 {
		return "", packages, nil
	}
	names := map[string]bool{}
	for _, p := range packages {
		found := false
		for _, file := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
			text, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err != nil {
				return "", nil, fmt.Errorf("look for tests: %w", err)
			}
			for _, match := range testFunction.FindAllSubmatch(text, -1) {
				if name := string(match[1]); name != "TestMain" && s.has(name) {
					names[name], found = true, true
				}
			}
		}
		if found {
			with = append(with, p)
		}
	}
	sorted := make([]string, 0, len(names))
	for name := range names {
		sorted = append(sorted, name)
	}
	slices.Sort(sorted)
	return "^(" + strings.Join(sorted, "|") + ")$", with, nil
}

func (s *slice) has(name string) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return int(h.Sum32()%uint32(s.of)) == s.part-1 //nolint:gosec // a small number
}
