package operatortest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/operatorkit/operatorkit/operator/operatortest/internal/sources"
)

const (
	kubernetesVersion = "v1.36.3"
	// packagesInAll is about how many packages the control plane consists of.
	packagesInAll = 2700
	// progressPeriod is the time between two lines of progress.
	progressPeriod = 3 * time.Second
	// errorLines is how many lines of a failed command's output are shown.
	errorLines = 20
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
	cmd := buildCommand(ctx, dir, output)
	reader, writer, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make a pipe for the output of %s: %w", cmd, err)
	}
	defer func() { _ = reader.Close() }()
	cmd.Stdout, cmd.Stderr = writer, writer
	err = cmd.Start()
	_ = writer.Close()
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("build the control plane: %w; install Go, or name a binary with %s", err, BinaryVariable)
	}
	if err != nil {
		return fmt.Errorf("build the control plane: %w", err)
	}
	last := watchBuild(reader, progress)
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return fmt.Errorf("build the control plane (Kubernetes %s): %w; what is compiled is kept, so that trying again goes on from there;"+
			" check the network and GOPROXY if modules could not be downloaded, or name a binary with %s; last lines of go build:\n%s",
			kubernetesVersion, err, BinaryVariable, strings.Join(last, "\n"))
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
	cmd := exec.CommandContext(ctx, "go", "build", "-v", "-trimpath", "-buildvcs=false", "-ldflags="+flags, "-o", output, ".") //nolint:gosec // the arguments are ours
	cmd.Dir = dir
	// What the user sets for their own builds must not change this one.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GO111MODULE=on",
		"GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	return cmd
}

// watchBuild reads the output of go build -v, which names each package when it
// is compiled and each module when it is downloaded, until its end. It writes
// a line of progress every few seconds and returns the last lines read.
func watchBuild(output io.Reader, progress io.Writer) []string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(output); scanner.Scan(); {
			lines <- scanner.Text()
		}
		_, _ = io.Copy(io.Discard, output) // a line too long for the scanner
	}()
	fmt.Fprintf(progress, "operatortest: building the control plane, Kubernetes %s (once; some minutes)\n", kubernetesVersion)
	ticker := time.NewTicker(progressPeriod)
	defer ticker.Stop()
	start := time.Now()
	packages, now := 0, "starting"
	var last []string
	for {
		select {
		case line, more := <-lines:
			if !more {
				fmt.Fprintf(progress, "operatortest: build of the control plane ended after %s\n", time.Since(start).Round(time.Second))
				return last
			}
			now = strings.TrimPrefix(line, "go: ")
			if !strings.Contains(line, " ") {
				packages++
			}
			last = append(last, line)
			last = last[max(0, len(last)-errorLines):]
		case <-ticker.C:
			fmt.Fprintf(progress, "operatortest: building the control plane: %s, %d of at most about %d packages compiled, now %s\n",
				time.Since(start).Round(time.Second), packages, packagesInAll, now)
		}
	}
}
