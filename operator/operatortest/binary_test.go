package operatortest_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/internal/sources"
)

func TestTheEmbeddedSourcesAreThoseOfTheFolder(t *testing.T) {
	want, err := sources.Pack("controlplane")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("controlplane.txtar")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("controlplane.txtar is stale, run go generate (-folder +file):\n%s", diff)
	}
}

func TestSourcesAreUnpackedAsTheyWerePacked(t *testing.T) {
	text, err := sources.Pack("controlplane")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := sources.Unpack(text, dir); err != nil {
		t.Fatal(err)
	}
	again, err := sources.Pack(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(text), string(again)); diff != "" {
		t.Errorf("(-packed +unpacked and packed again):\n%s", diff)
	}
}

func TestABinaryIsLookedForWhereItIsNamedFirst(t *testing.T) {
	named := filepath.Join(t.TempDir(), "controlplane")
	writeFile(t, named)
	fromEnvironment := filepath.Join(t.TempDir(), "controlplane")
	writeFile(t, fromEnvironment)
	t.Setenv(operatortest.BinaryVariable, fromEnvironment)
	for want, config := range map[string]operatortest.Config{
		named:           {BinaryPath: named},
		fromEnvironment: {},
	} {
		got, err := operatortest.Binary(t.Context(), config)
		if err != nil || got != want {
			t.Errorf("Binary(%+v) = %s, %v; want %s", config, got, err, want)
		}
	}

	missing := filepath.Join(t.TempDir(), "missing")
	if _, err := operatortest.Binary(t.Context(), operatortest.Config{BinaryPath: missing}); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "Config.BinaryPath") {
		t.Errorf("a name of no file: %v, want an error that says where it was named", err)
	}
}

func TestWithoutGoTheErrorSaysWhatToDo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv(operatortest.BinaryVariable, "")
	_, err := operatortest.Binary(t.Context(), operatortest.Config{CacheDir: t.TempDir(), Progress: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "install Go, or name a binary with "+operatortest.BinaryVariable) {
		t.Errorf("%v", err)
	}
}

func TestAFailedBuildSaysWhyAndWhatToDoAndLeavesNothing(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv(operatortest.BinaryVariable, "")
	cache := t.TempDir()
	_, err := operatortest.Binary(t.Context(), operatortest.Config{CacheDir: cache, Progress: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "module lookup disabled by GOPROXY=off") || !strings.Contains(err.Error(), "check the network and GOPROXY") {
		t.Errorf("%v", err)
	}
	left, err := filepath.Glob(filepath.Join(cache, "controlplane", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 1 || filepath.Base(left[0]) != "lock" {
		t.Errorf("left behind: %v, want the lock only", left)
	}
}

func TestABinaryThatManyNeedIsBuiltOnce(t *testing.T) {
	target := filepath.Join(t.TempDir(), "hash", "controlplane")
	const callers = 8
	var (
		mu     sync.Mutex
		builds int
		group  sync.WaitGroup
		begun  = make(chan struct{})
	)
	waiting := newCountingWriter(callers - 1)
	build := func(_ context.Context, output string) error {
		mu.Lock()
		builds++
		if builds == 1 {
			close(begun)
		}
		mu.Unlock()
		<-waiting.reached // all others wait for this build
		if _, err := os.Stat(target); err == nil {
			t.Error("the target is there before it is complete")
		}
		return os.WriteFile(output, []byte("program"), 0o600)
	}
	call := func() {
		if err := operatortest.BuildOnce(t.Context(), target, waiting, build); err != nil {
			t.Error(err)
		}
		if text, err := os.ReadFile(target); err != nil || string(text) != "program" {
			t.Errorf("the target: %q, %v", text, err)
		}
	}
	group.Go(call)
	<-begun
	for range callers - 1 {
		group.Go(call)
	}
	group.Wait()
	if builds != 1 {
		t.Errorf("built %d times", builds)
	}
}

func TestAfterAFailedBuildTheNextOneIsTried(t *testing.T) {
	target := filepath.Join(t.TempDir(), "hash", "controlplane")
	failure := errors.New("no space left")
	err := operatortest.BuildOnce(t.Context(), target, io.Discard, func(context.Context, string) error { return failure })
	if !errors.Is(err, failure) {
		t.Errorf("%v, want %v", err, failure)
	}
	err = operatortest.BuildOnce(t.Context(), target, io.Discard, func(_ context.Context, output string) error {
		return os.WriteFile(output, nil, 0o600)
	})
	if err != nil {
		t.Error(err)
	}
}

func TestWaitingForAnotherBuildEndsWithTheContext(t *testing.T) {
	target := filepath.Join(t.TempDir(), "hash", "controlplane")
	begun, end := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		_ = operatortest.BuildOnce(t.Context(), target, io.Discard, func(context.Context, string) error {
			close(begun)
			<-end
			return errors.New("never mind")
		})
	})
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	waiting := newCountingWriter(1)
	go func() {
		<-waiting.reached
		cancel()
	}()
	err := operatortest.BuildOnce(ctx, target, waiting, func(context.Context, string) error { return errors.New("built twice") })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
	close(end)
	group.Wait()
}

func writeFile(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// countingWriter closes reached at the n-th write.
type countingWriter struct {
	mu      sync.Mutex
	left    int
	reached chan struct{}
}

func newCountingWriter(n int) *countingWriter {
	return &countingWriter{left: n, reached: make(chan struct{})}
}

func (w *countingWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left--; w.left == 0 {
		close(w.reached)
	}
	return len(p), nil
}
