package main

import (
	"bufio"
	"bytes"
	"go/parser"
	"go/scanner"
	"go/token"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/operatorkit/operatorkit/examples/database/life"
	"github.com/operatorkit/operatorkit/examples/database/v1alpha1"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/command/commandtest"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestMain(m *testing.M) { operatortest.VerifyTestMain(m) }

func TestDatabasesSurviveCrashesAndLiesAtEveryWrite(t *testing.T) {
	operatortest.BreakAtEveryWrite(t, lifeOfDatabases(t))
}

func TestDatabasesSurviveAServerThatLags(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: a run takes as long as one with a crash")
	}
	operatortest.LagAtEveryWrite(t, lifeOfDatabases(t))
}

func TestDatabasesAreQuietWhenThereIsNothingToDo(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: seven phases are listened to, one after the other")
	}
	s := lifeOfDatabases(t)
	// After a replacement the operator looks once more, two seconds later, whether the old object is gone.
	s.Phases = slices.DeleteFunc(s.Phases, func(p operatortest.Phase) bool { return p.Name == "grow" || p.Name == "start the second" })
	operatortest.Quiet(t, s)
}

func TestR19TheRightsOfTheManifestsAreExactlyThoseThatAreNeeded(t *testing.T) {
	operatortest.Rights(t, lifeOfDatabases(t))
}

func lifeOfDatabases(t *testing.T) operatortest.Scenario {
	t.Helper()
	z := &life.Zone{}
	server := httptest.NewServer(z)
	t.Cleanup(server.Close)
	s := commandtest.Scenario(t, newConfig(), "--zone", server.URL)
	s.Objects, s.Phases, s.Parallel = life.Objects(), life.Phases(z), 4
	s.Start = commandtest.StartEach(newConfig, "--zone", server.URL)
	return s
}

func TestWhatThereIsIsPlanned(t *testing.T) {
	kube := operatortest.Start(t)
	crds, err := operator.ReadCRDs(v1alpha1.CRDs)
	if err != nil {
		t.Fatal(err)
	}
	kube.InstallCRDs(t, crds...)
	config := newConfig()
	config.KeepGlobalLoggers = true
	var out bytes.Buffer
	args := []string{"plan", "--namespace", kube.Namespace(t), "--zone", "http://127.0.0.1:1", "--kubeconfig", kube.Kubeconfig()}
	if code := command.Execute(t.Context(), config, args, &out, &out); code != command.ExitOK || !strings.Contains(out.String(), "0 to create") {
		t.Errorf("exit code %d: %s", code, &out)
	}
}

// The aim of the example, and what docs/controllerruntime.md says of it and of its twin.
func TestTheLogicTakesLessThan150Lines(t *testing.T) {
	ours, twin := linesOf(t, "."), linesOf(t, "controllerruntime")
	if ours >= 150 {
		t.Errorf("the logic takes %d lines", ours)
	}
	guide, err := os.ReadFile("../../docs/controllerruntime.md")
	if err != nil {
		t.Fatal(err)
	}
	for what, lines := range map[string]int{"with operatorkit": ours, "with controller-runtime": twin} {
		m := regexp.MustCompile(`\| ` + what + ` \| (\d+) \|`).FindSubmatch(guide)
		if m == nil || string(m[1]) != strconv.Itoa(lines) {
			t.Errorf("the lines %s are %d, and the guide says %q", what, lines, m)
		}
	}
}

// linesOf counts the lines of logic of a folder: those with anything of the language on them, which neither blank lines have nor those with
// comments only. Package clauses and imports are none, nor are the tests.
func linesOf(t *testing.T, dir string) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines += logicOf(t, content)
	}
	return lines
}

func logicOf(t *testing.T, content []byte) int {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", content, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	begin := file.Name.End()
	for _, d := range file.Decls {
		begin = d.End()
	}
	in := set.AddFile("", -1, len(content))
	skip := in.Base() - set.File(file.Pos()).Base()
	var s scanner.Scanner
	s.Init(in, content, nil, 0) // without comments
	seen := map[int]bool{}
	for pos, tok, text := s.Scan(); tok != token.EOF; pos, tok, text = s.Scan() {
		if int(pos)-skip < int(begin) || tok == token.SEMICOLON && text == "\n" {
			continue
		}
		// A string may go over several lines.
		for i := range strings.Count(text, "\n") + 1 {
			seen[in.Line(pos)+i] = true
		}
	}
	return len(seen)
}

func TestLinesOfLogicAreNeitherBlankNorCommentsNorImports(t *testing.T) {
	const file = `// Package p is a sample.
package p

import (
	"fmt"
)

// f says something.
func f() { // here
	/* nothing
	 yet */

	fmt.Println(` + "`a\nb`" + `)
}
`
	if got := logicOf(t, []byte(file)); got != 4 {
		t.Errorf("got %d lines, want 4", got)
	}
}

func TestTheTwinGoesThroughTheSameStory(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: it links another operator, in a module of its own")
	}
	_ = os.Getenv("SUITE_RUN") // What the other module reads is unknown to Go's cache of test results.
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-short", "-v", "./...")
	cmd.Dir = "controllerruntime"
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for lines := bufio.NewScanner(strings.NewReader(string(out))); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "--- ") {
			t.Log(lines.Text())
		}
	}
}
