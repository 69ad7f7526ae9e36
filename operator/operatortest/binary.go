package operatortest

import (
	"context"
	"crypto/sha256"
	_ "embed" // the sources of the control plane
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/gofrs/flock"
)

//go:generate go run ./gensources

//go:embed controlplane.txtar
var controlPlaneSources []byte

// Binary returns the path of the control plane's binary. It is found in this
// order: Config.BinaryPath; the folder Config.CacheDir, by a hash of the
// binary's sources, the Go version and the platform; or it is built there,
// which takes some minutes once, a Go installation, and the modules it needs
// (downloaded with the user's GOPROXY). Processes that need it at the same time
// build it once. Run and Start call it themselves.
func Binary(ctx context.Context, config Config) (string, error) {
	config, err := config.complete()
	if err != nil {
		return "", err
	}
	return findBinary(ctx, config)
}

func findBinary(ctx context.Context, config Config) (string, error) {
	if config.BinaryPath != "" {
		path, err := filepath.Abs(config.BinaryPath)
		if err == nil {
			_, err = os.Stat(path)
		}
		if err != nil {
			return "", fmt.Errorf("use the control plane's binary named by Config.BinaryPath or %s: %w", BinaryVariable, err)
		}
		return path, nil
	}
	target := filepath.Join(config.CacheDir, "controlplane", sourcesHash(), "controlplane")
	if runtime.GOOS == "windows" {
		target += ".exe"
	}
	err := buildOnce(ctx, target, config.Progress, func(ctx context.Context, output string) error {
		return build(ctx, output, config.Progress)
	})
	return target, err
}

// sourcesHash names a build: other sources, Go or platform, another name.
func sourcesHash() string {
	h := sha256.New()
	h.Write(controlPlaneSources)
	fmt.Fprint(h, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// lockPoll is how often a process looks whether another one has let go.
const lockPoll = 200 * time.Millisecond

// buildOnce makes sure that target exists. Of all the processes and goroutines
// that call it at the same time, one calls build, which writes the file it is
// told; the others wait. A target is complete: it appears by a rename.
func buildOnce(ctx context.Context, target string, progress io.Writer, build func(ctx context.Context, output string) error) error {
	if exists(target) {
		return nil
	}
	dir := filepath.Dir(target)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of the control plane's binary: %w", err)
	}
	lock := flock.New(filepath.Join(dir, "lock"))
	locked, err := lock.TryLock()
	if err == nil && !locked {
		fmt.Fprintln(progress, "operatortest: another process builds the control plane: waiting for it")
		_, err = lock.TryLockContext(ctx, lockPoll)
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", lock.Path(), err)
	}
	defer func() { _ = lock.Close() }()

	if exists(target) { // built by the process we waited for
		return nil
	}
	work, err := os.MkdirTemp(dir, "build-")
	if err != nil {
		return fmt.Errorf("make a folder to build the control plane in: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	output := filepath.Join(work, filepath.Base(target))
	if err := build(ctx, output); err != nil {
		return err
	}
	if err := os.Rename(output, target); err != nil {
		return fmt.Errorf("put the control plane's binary into place: %w", err)
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
