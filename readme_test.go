package operatorkit_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadmeShowsTheFirstOperatorAsItIs(t *testing.T) {
	readme, program := read(t, "README.md"), read(t, "examples/first/main.go")
	_, body, _ := strings.Cut(program, "\n")
	_, rest, _ := strings.Cut(readme, "## A first operator")
	_, rest, _ = strings.Cut(rest, "```go\n")
	shown, _, _ := strings.Cut(rest, "```\n")
	if diff := cmp.Diff(body, shown); diff != "" {
		t.Errorf("README.md differs from examples/first/main.go (-program +readme):\n%s", diff)
	}
	if n := strings.Count(program, "\n"); n >= 60 {
		t.Errorf("the first operator has %d lines, the README says under 60", n)
	}
}

func TestReadmeLinksLeadSomewhere(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no page in docs: %v", err)
	}
	for _, file := range append(pages, "README.md", "CONTRIBUTING.md") {
		for _, link := range regexp.MustCompile(`\]\(([^)#]+)\)`).FindAllStringSubmatch(read(t, file), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), link[1])); err != nil && !strings.Contains(link[1], "://") {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
