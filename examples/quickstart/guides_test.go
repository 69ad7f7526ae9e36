package quickstart_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/operatorkit/operatorkit/examples/quickstart"
	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/guards"
)

const root = "../.."

// fenced is a block of a page that stands between fences.
type fenced struct {
	page, language string
	lines          []string
	// link is the last one to a file before it that is no page.
	link string
}

func (b fenced) String() string {
	return fmt.Sprintf("the block of %s that begins with %q", b.page, b.lines[0])
}

var link = regexp.MustCompile(`\]\(([^)#:]+\.[a-z]+)\)`)

func blocksOf(t *testing.T, page string) []fenced {
	t.Helper()
	var blocks []fenced
	var inside bool
	last := ""
	for _, line := range linesIn(t, page) {
		language, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && !inside:
			blocks = append(blocks, fenced{page: page, language: language, link: last})
		case !fence && inside:
			b := &blocks[len(blocks)-1]
			b.lines = append(b.lines, line)
		case !fence:
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				if filepath.Ext(m[1]) != ".md" {
					last = filepath.Join(filepath.Dir(page), m[1])
				}
			}
		}
		inside = inside != fence
	}
	if inside || slices.ContainsFunc(blocks, func(b fenced) bool { return len(b.lines) == 0 }) {
		t.Fatalf("%s: a block does not end, or is empty", page)
	}
	return blocks
}

func linesIn(t *testing.T, file string) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(content), "\n")
}

// guides are the pages that README.md lists as such.
func guides(t *testing.T) []string {
	t.Helper()
	_, list, _ := strings.Cut(strings.Join(linesIn(t, "README.md"), "\n"), "\n## Guides\n")
	list, _, _ = strings.Cut(list, "\n## ")
	var pages []string
	for _, m := range link.FindAllStringSubmatch(list, -1) {
		pages = append(pages, m[1])
	}
	if len(pages) == 0 {
		t.Fatal("README.md lists no guides")
	}
	return pages
}

// What a page shows is in a file that is compiled, or compared, by another test: the last one that it links to before it shows it. A
// picture is of no file, and what a program says only has to be in one on a guide.
func TestGuidesShowFilesAsTheyAre(t *testing.T) {
	of := guides(t)
	for _, page := range pages(t) {
		for _, b := range blocksOf(t, page) {
			if b.language == "sh" || b.language == "mermaid" || b.language == "" && !slices.Contains(of, page) {
				continue
			}
			if b.link == "" {
				t.Errorf("%s: there is no link to a file before it", b)
				continue
			}
			if !strings.Contains(trimmed(linesIn(t, b.link)), trimmed(b.lines)) {
				t.Errorf("%s is not in %s", b, b.link)
			}
		}
	}
}

// trimmed are lines without their indentation, and with what is another one in each run as pages have it.
func trimmed(lines []string) string {
	var b strings.Builder
	asOnPages := strings.NewReplacer("NAMESPACE", "default", " (UID UID)", "")
	for _, line := range lines {
		b.WriteString("\n" + strings.TrimSpace(asOnPages.Replace(line)))
	}
	return b.String() + "\n"
}

// pages are all that there are, sorted, with the guides among them.
func pages(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "docs/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := append(guides(t), "README.md", "CONTRIBUTING.md")
	for _, file := range files {
		all = append(all, filepath.Join("docs", filepath.Base(file)))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestCommandsOfGuidesAreKnown(t *testing.T) {
	commands := 0
	for _, page := range pages(t) {
		for _, line := range linesToRun(t, page) {
			for _, words := range commandsIn([]string{line}) {
				commands++
				if err := known(t, words); err != nil {
					t.Errorf("%s: %s: %v", page, strings.Join(words, " "), err)
				}
			}
		}
	}
	if commands == 0 {
		t.Error("there are no commands")
	}
}

func TestCommandsThatThereAreNotAreFound(t *testing.T) {
	for _, line := range []string{
		"operator plan --everything", "operator draw home", "operator run now", "operator", "make tests", "make test PACKAGES=./framework",
		"go test ./examples/slowstart", "go test ./examples/quickstart -run TestThatNobodyHasWritten", "go run ./framework", "kubectl remove x",
		"operatorkit plan", "cat x | operator apply",
	} {
		words := commandsIn([]string{line})
		if err := known(t, words[len(words)-1]); err == nil {
			t.Errorf("%q is taken for a command", line)
		}
	}
}

// linesToRun are the lines of the blocks of a page that are for a shell, without comments.
func linesToRun(t *testing.T, page string) []string {
	t.Helper()
	var lines []string
	for _, b := range blocksOf(t, page) {
		if b.language != "sh" {
			continue
		}
		text := strings.ReplaceAll(strings.Join(b.lines, "\n"), "\\\n", " ")
		text = regexp.MustCompile(`(?m)(^|\s)#.*$`).ReplaceAllString(text, "")
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// commandsIn splits lines of a shell into commands and their words. Between quotes there are no blanks.
func commandsIn(lines []string) [][]string {
	var commands [][]string
	for _, line := range regexp.MustCompile(`\n|\||&&|;`).Split(strings.Join(lines, "\n"), -1) {
		if words := strings.Fields(line); len(words) > 0 {
			for i, word := range words {
				words[i] = strings.Trim(word, `'"`)
			}
			commands = append(commands, words)
		}
	}
	return commands
}

// verbs are those of kubectl that pages use.
var verbs = []string{"annotate", "apply", "delete", "get", "label", "logs", "port-forward", "rollout", "scale", "wait"}

func known(t *testing.T, words []string) error {
	t.Helper()
	for strings.Contains(words[0], "=") {
		words = words[1:] // variables of the environment
	}
	program, args := words[0], words[1:]
	switch {
	case program == "operator":
		return knownToOperators(args)
	case program == "make":
		return knownToMake(t, args)
	case program == "go" && len(args) > 1 && args[0] == "test":
		return knownTest(args[1:])
	case program == "go" && len(args) > 1 && args[0] == "run":
		return knownProgram(t, args[1:])
	case program == "kubectl" && len(args) > 0 && slices.Contains(verbs, args[0]), program == "cd", program == "curl", program == "dot":
		return nil
	}
	return fmt.Errorf("nobody knows %s", program)
}

// knownToOperators parses the arguments as every operator does that reads guards.
func knownToOperators(args []string) error {
	config := quickstart.Config
	config.ReadGuards = guards.Read
	root, err := command.New(config)
	if err != nil {
		return err
	}
	cmd, rest, err := root.Find(args)
	switch {
	case err != nil:
		return err
	case cmd == root:
		return fmt.Errorf("it has no command")
	}
	cmd.InitDefaultHelpFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if len(args) == 1 && cmd.Name() == "help" {
		return nil
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

func knownToMake(t *testing.T, args []string) error {
	t.Helper()
	makefile := strings.Join(linesIn(t, "Makefile"), "\n")
	for _, arg := range args {
		pattern := `(?m)^` + regexp.QuoteMeta(arg) + `:`
		if name, _, sets := strings.Cut(arg, "="); sets {
			pattern = `\$\(` + regexp.QuoteMeta(name) + `\)`
		}
		if !regexp.MustCompile(pattern).MatchString(makefile) {
			return fmt.Errorf("the Makefile has no %s", arg)
		}
	}
	return nil
}

// knownTest looks for tests of the names that are asked for.
func knownTest(args []string) error {
	var names, folder string
	for i, arg := range args {
		switch {
		case arg == "-run" && i+1 < len(args):
			names, _, _ = strings.Cut(args[i+1], "/")
		case strings.HasPrefix(arg, "./"):
			folder = arg
		}
	}
	pattern, err := regexp.Compile(names)
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(content, -1) {
			if pattern.Match(m[1]) {
				return nil
			}
		}
	}
	return fmt.Errorf("%s has no test that %q matches", folder, names)
}

// knownProgram looks for the folder of a program, and for what that runs in turn.
func knownProgram(t *testing.T, args []string) error {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, args[0], "*.go"))
	if err != nil {
		return err
	}
	isProgram := slices.ContainsFunc(files, func(file string) bool {
		content, err := os.ReadFile(file)
		return err == nil && regexp.MustCompile(`(?m)^package main$`).Match(content)
	})
	switch {
	case !isProgram:
		return fmt.Errorf("there is no program in %s", args[0])
	case len(args) > 2 && args[1] == "--":
		return known(t, args[2:])
	case args[0] == "./examples/quickstart/cmd/operator" && len(args) > 1:
		return knownToOperators(args[1:])
	}
	return nil
}
