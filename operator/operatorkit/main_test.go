package main

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestMain(m *testing.M) { operatortest.VerifyTestMain(m) }

// run runs a command in a folder, and returns what it says.
func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	t.Chdir(dir)
	var out bytes.Buffer
	if code := execute(args, &out, &out); code != 0 {
		t.Fatalf("operatorkit %s: %s", strings.Join(args, " "), &out)
	}
	return out.String()
}

// refused runs a command that is to fail, and to write nothing.
func refused(t *testing.T, dir, want string, args ...string) {
	t.Helper()
	t.Chdir(dir)
	before := contents(t, dir)
	var out bytes.Buffer
	if code := execute(args, &out, &out); code != 1 || !strings.Contains(out.String(), want) {
		t.Errorf("operatorkit %s: exit code %d, want %q in: %s", strings.Join(args, " "), code, want, &out)
	}
	if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
		t.Errorf("operatorkit %s has changed: %s", strings.Join(args, " "), diff)
	}
}

// contents are the files below a folder.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		found[strings.TrimPrefix(path, dir+"/")] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// newProject writes a project, and returns its folder.
func newProject(t *testing.T) string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "shop")
	run(t, here, "new", dir, "--module", "example.com/shop", "--group", "shop.example.com", "--kind", "Store")
	return dir
}

// What docs/from-kubebuilder.md says of the lines that are generated.
func TestTheGeneratedLinesAreAsManyAsTheGuideSays(t *testing.T) {
	guide, err := os.ReadFile("../../docs/from-kubebuilder.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]int{}
	for path, content := range contents(t, newProject(t)) {
		what := sortOf(path)
		for line := range strings.Lines(content) {
			if strings.TrimSpace(line) != "" && what != "" {
				lines[what]++
				lines["all"]++
			}
		}
	}
	for what, n := range lines {
		if row := regexp.MustCompile(`\| ` + what + ` \| \d+ \| (\d+) \|`).FindSubmatch(guide); row == nil || string(row[1]) != strconv.Itoa(n) {
			t.Errorf("%s: there are %d lines, and the guide says %s", what, n, row)
		}
	}
}

// sortOf is the row of the guide that counts a file of a project.
func sortOf(path string) string {
	switch {
	case path == "go.mod", path == "go.sum":
		return ""
	case strings.Contains(path, "zz_generated"), strings.HasPrefix(path, "api/v1alpha1/crd/"):
		return "written anew by controller-gen"
	case strings.HasSuffix(path, "_test.go"):
		return "tests"
	case strings.HasSuffix(path, ".go"):
		return "Go, by hand from then on"
	case strings.HasPrefix(path, "samples/"):
		return "manifests"
	case strings.HasSuffix(path, ".md"):
		return "README and other text"
	}
	return "Makefile, Dockerfile, CI, linter and other tools"
}

// edit changes a file of a project as its author would.
func edit(t *testing.T, dir, path, before, after string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, path))
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.Replace(string(content), before, after, 1)
	if edited == string(content) {
		t.Fatalf("%s has no %q", path, before)
	}
	if err := os.WriteFile(filepath.Join(dir, path), []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
}

// grow uses each of the commands, with the author's edits between.
func grow(t *testing.T, dir string) {
	t.Helper()
	run(t, dir, "add", "resource", "notes")
	edit(t, dir, "store/v1.go", "var v1", "// v1 is what we have had from the beginning.\nvar v1")
	edit(t, dir, "store/v1.go", `name:      "v1"`, `name: "v1"`)
	edit(t, dir, "store/v1.go", "newObjects, newListing", "newObjects, /* first */\n\t\tnewListing")
	run(t, dir, "add", "api", "--kind", "Policy")
	edit(t, dir, "operator.go", "\tstore.New,\n", "\t// Stores go first.\n\tstore.New, // and are ours\n")
	run(t, dir, "add", "version", "v2", "--kind", "Store")
	run(t, dir, "add", "resource", "mirrors", "--kind", "Store", "--type", "external")
	run(t, dir, "add", "resource", "audits", "--kind", "Policy", "--type", "external")
}

// tool runs a program in a project, without the network.
func tool(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=readonly", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestProjectsBuildFromTheCheckoutAlone(t *testing.T) {
	// What go list reads of the checkout is unknown to Go's cache of test results.
	_ = os.Getenv("SUITE_RUN")
	dir := newProject(t)
	if changed := tool(t, dir, "gofmt", "-l", "."); changed != "" {
		t.Errorf("gofmt would change %s", changed)
	}
	t.Run("new", func(t *testing.T) { tool(t, dir, "go", "vet", "./...") })
	t.Run("grown", func(t *testing.T) {
		grow(t, dir)
		if changed := tool(t, dir, "gofmt", "-l", "."); changed != "" {
			t.Errorf("gofmt would change %s", changed)
		}
		tool(t, dir, "go", "vet", "./...")
	})
	for path, want := range map[string]string{
		"operator.go":         "\t// Stores go first.\n\tstore.New, // and are ours\n\tpolicy.New,\n",
		"store/v1.go":         "// v1 is what we have had from the beginning.\nvar v1 = version{\n\tname: \"v1\",\n\tresources: []newResource{newObjects, /* first */\n\t\tnewListing, newNotes, newStatus},\n}\n",
		"store/v2.go":         "\tresources: []newResource{newObjects, newListing, newNotes, newMirrors, newStatus},\n",
		"store/store.go":      "var versions = []version{v1, v2}\n",
		"policy/v1.go":        "\tresources: []newResource{newObjects, newListing, newAudits, newStatus},\n",
		"rights_test.go":      "\tlifeOfStores,\n\tlifeOfPolicies,\n",
		"api/v1alpha1/doc.go": "\t&Store{}, &StoreList{},\n\t&Policy{}, &PolicyList{},\n",
	} {
		if got := contents(t, dir)[path]; !strings.Contains(got, want) {
			t.Errorf("%s lacks %q:\n%s", path, want, got)
		}
	}
}

// The whole way of somebody who begins: it takes the minutes of two projects' own tests.
func TestProjectsPassTheirOwnTests(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: it runs the tests of whole projects, each on a control plane of its own")
	}
	dir := newProject(t)
	t.Log(tool(t, dir, "make", "test"))
	grow(t, dir)
	t.Log(tool(t, dir, "make", "test", "build"))
}

func TestGeneratedFilesAreThoseOfControllerGen(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: controller-gen reads all that the API imports")
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(here, "../../bin/controller-gen-*"))
	if err != nil || len(found) == 0 {
		t.Skip("controller-gen is not there: make generate installs it")
	}
	dir := newProject(t)
	run(t, dir, "add", "api", "--kind", "ShopAssistantAppointment")
	before := contents(t, dir)
	tool(t, dir, found[0], "object", "crd:maxDescLen=400", "paths=./api/v1alpha1", "output:crd:dir=api/v1alpha1/crd")
	after := contents(t, dir)
	for path, was := range before {
		is := after[path]
		if strings.HasSuffix(path, "deepcopy.go") { // the order is controller-gen's
			was, is = functions(was), functions(is)
		}
		if diff := cmp.Diff(was, is); diff != "" {
			t.Errorf("%s: make generate changes it (-written +generated):\n%s", path, diff)
		}
	}
}

// functions are how often each line is in a file.
func functions(text string) string {
	count := map[string]int{}
	for line := range strings.Lines(regexp.MustCompile(`\n+`).ReplaceAllString(text, "\n")) {
		count[line]++
	}
	return cmp.Diff(nil, count)
}

func TestBadNamesAndFoldersAreRefusedWithWhatToDo(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ folder, module, group, kind, want string }{
		"name":            {"My_Shop", "example.com/shop", "shop.example.com", "Store", `"My_Shop" can't be the name of an operator`},
		"module":          {"shop", "example.com/ shop", "shop.example.com", "Store", "give one such as example.com/shop"},
		"group":           {"shop", "example.com/shop", "shop", "Store", "give the name of a domain that is yours, such as shop.example.com"},
		"Kubernetes' own": {"shop", "example.com/shop", "shop.k8s.io", "Store", "which needs its approval"},
		"small kind":      {"shop", "example.com/shop", "shop.example.com", "store", "it begins with a capital letter"},
		"keyword":         {"shop", "example.com/shop", "shop.example.com", "Func", "choose another one, such as FuncClaim"},
		"taken package":   {"shop", "example.com/shop", "shop.example.com", "Directory", "choose another one"},
		"list":            {"shop", "example.com/shop", "shop.example.com", "StoreList", "choose another one, such as StoreClaim"},
		"full folder":     {full, "example.com/shop", "shop.example.com", "Store", "is there and not empty: choose another name, or remove it"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := tc.folder
			if !filepath.IsAbs(folder) {
				folder = filepath.Join(t.TempDir(), folder)
			}
			t.Chdir(here)
			var out bytes.Buffer
			code := execute([]string{"new", folder, "--module", tc.module, "--group", tc.group, "--kind", tc.kind}, &out, &out)
			if code != 1 || !strings.Contains(out.String(), tc.want) {
				t.Errorf("exit code %d, want %q in: %s", code, tc.want, &out)
			}
			if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
				t.Error("a project was written")
			}
		})
	}
	refused(t, t.TempDir(), `run it in the folder of a project that "operatorkit new" has written`, "add", "api", "--kind", "Cart")
}

func TestWhatCannotBeAddedToAnEditedProjectIsRefused(t *testing.T) {
	dir := newProject(t)
	refused(t, dir, "there is a kind Store already", "add", "api", "--kind", "Store")
	refused(t, dir, `--kind "Cart" is none of the project's kinds, which are Store`, "add", "version", "v2", "--kind", "Cart")
	refused(t, dir, "there is a version v1 of Store already", "add", "version", "v1")
	refused(t, dir, `"two" can't be the name of a version`, "add", "version", "two")
	refused(t, dir, `"Backups" can't be the name of a resource`, "add", "resource", "Backups")
	refused(t, dir, "--type is objects or external", "add", "resource", "backups", "--type", "cloud")
	refused(t, dir, "the package store has a newListing already", "add", "resource", "listing")
	refused(t, dir, "has no variable v7", "add", "resource", "backups", "--version", "v7")
	if err := os.WriteFile(filepath.Join(dir, "store", "backups.go"), []byte("package store\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, dir, "there are files already that would be: store/backups.go", "add", "resource", "backups")

	edit(t, dir, "store/v1.go", "[]newResource{newObjects, newListing, newStatus}", "append(first, newStatus)")
	refused(t, dir, "store/v1.go has no list v1.resources any more that is written out as new writes it: nothing was written; add newSpares there yourself", "add", "resource", "spares")
	refused(t, dir, "store/v1.go has no list v1.resources any more", "add", "version", "v2")
	edit(t, dir, "operator.go", "var frameworks = ", "var all = ")
	refused(t, dir, "add cart.New there yourself", "add", "api", "--kind", "Cart")
	edit(t, dir, "operator.go", "package main", "package")
	refused(t, dir, "operator.go can't be understood", "add", "api", "--kind", "Cart")
}

func TestAnInsertionChangesNothingElse(t *testing.T) {
	for name, tc := range map[string]struct{ before, after string }{
		"empty":                {"var l = []int{}\n", "var l = []int{x}\n"},
		"one line":             {"var l = []int{a, b}\n", "var l = []int{a, b, x}\n"},
		"one line with comma":  {"var l = []int{a, b,}\n", "var l = []int{a, b, x}\n"},
		"lines":                {"var l = []int{\n\ta,\n}\n", "var l = []int{\n\ta,\n\tx,\n}\n"},
		"a comment at the end": {"var l = []int{\n\ta, // first\n\t// no more\n}\n", "var l = []int{\n\ta, // first\n\tx,\n\t// no more\n}\n"},
		"before the last":      {"var l = []int{a, last}\n", "var l = []int{a, x, last}\n"},
		"lines before":         {"var l = []int{\n\ta,\n\tlast,\n}\n", "var l = []int{\n\ta,\n\tx,\n\tlast,\n}\n"},
		"only the last":        {"var l = []int{last}\n", "var l = []int{x, last}\n"},
		"the last, not last":   {"var l = []int{last, a}\n", "var l = []int{last, a, x}\n"},
		"not formatted":        {"var  k = 1\nvar l = []int{ a }\n", "var  k = 1\nvar l = []int{ a, x }\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := parse("l.go", []byte("package p\n\n"+tc.before))
			if err != nil {
				t.Fatal(err)
			}
			s, err = s.insert("l", "x", "last")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff("package p\n\n"+tc.after, string(s.content)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
