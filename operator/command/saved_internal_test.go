package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/framework/plan"
)

func save(t *testing.T, file string) error {
	t.Helper()
	p := &program{config: Config{Name: "gardener", Version: "1"}}
	return p.savePlans(file, []*plan.Plan{{Object: plan.Object{Name: "home"}, Event: plan.UpdateEvent, Outcome: plan.Planned}})
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestASavedPlanIsForItsOwnerAloneAlsoInPlaceOfAFileThatWasForAll(t *testing.T) {
	file := filepath.Join(t.TempDir(), "home.plan")
	if err := os.WriteFile(file, []byte("an older one"), 0o644); err != nil { //nolint:gosec // what others can read is what it is about
		t.Fatal(err)
	}
	if err := save(t, file); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("its mode is %o, want 600", got)
	}
	if plans, _, err := (&program{config: Config{Name: "gardener"}}).readPlans(file); err != nil || len(plans) != 1 {
		t.Errorf("read %d plans, %v", len(plans), err)
	}
	if diff := cmp.Diff([]string{"home.plan"}, names(t, filepath.Dir(file))); diff != "" {
		t.Errorf("left beside it:\n%s", diff)
	}
}

func TestASavedPlanIsNotWrittenThroughALink(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := os.WriteFile(target, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if err := save(t, link); err == nil || !strings.Contains(err.Error(), "a symbolic link") {
		t.Errorf("got %v, want that it is a symbolic link", err)
	}
	if data, err := os.ReadFile(target); err != nil || string(data) != "precious" {
		t.Errorf("the target holds %q, %v", data, err)
	}
}

func TestASavedPlanThatCantBeCompletedLeavesTheFormerOneAndNothingElse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "folder")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{dir, filepath.Join(dir, "missing", "home.plan")} {
		if err := save(t, file); err == nil {
			t.Errorf("%s was written", file)
		}
	}
	if diff := cmp.Diff([]string(nil), names(t, dir)); diff != "" {
		t.Error(diff)
	}
}
