package operatortest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/operatorkit/operatorkit/operator/operatortest/internal/gobuild"
	"github.com/operatorkit/operatorkit/operator/operatortest/internal/sources"
)

const (
	kubernetesVersion = "v1.37.2"
	// packagesInAll is about how many packages the control plane consists of.
	packagesInAll = 2700
)

// build compiles the control plane from the embedded sources into output.
func build(ctx context.Context, output string, progress io.Writer) error {
	dir := filepath.Join(filepath.Dir(output), "src")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("make a folder for the sources of the control plane: %w", err)
	}
	if err := sources.Unpack(controlPlaneSources, dir); err != nil {
		return err
	}
	err := gobuild.Run(buildCommand(ctx, dir, output), "the control plane", packagesInAll, progress)
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%w; install Go, or name a binary with %s", err, BinaryVariable)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("build the control plane: %w; what is compiled is kept, so that trying again goes on from there", ctx.Err())
	}
	if err != nil {
		return fmt.Errorf("%w; what is compiled is kept, so that trying again goes on from there;"+
			" check the network and GOPROXY if modules could not be downloaded, or name a binary with %s", err, BinaryVariable)
	}
	return nil
}

func buildCommand(ctx context.Context, dir, output string) *exec.Cmd {
	const version = "k8s.io/component-base/version."
	major, minor, _ := strings.Cut(strings.TrimPrefix(kubernetesVersion, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	flags := strings.Join([]string{
		"-s", "-w",
		"-X", version + "gitVersion=" + kubernetesVersion,
		"-X", version + "gitMajor=" + major,
		"-X", version + "gitMinor=" + minor,
	}, " ")
	cmd := exec.CommandContext(ctx, "go", "build", "-v", "-buildvcs=false", "-ldflags="+flags, "-o", output, ".") //nolint:gosec // the arguments are ours
	cmd.Dir = dir
	// Flags that the user sets for their own builds must not change this one. Versions and all else are what the tests of this module are
	// compiled with: what both import is compiled once.
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GO111MODULE=on",
		"GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	return cmd
}
