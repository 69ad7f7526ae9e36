package demo_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/operatorkit/operatorkit/examples/internal/demo"
	"github.com/operatorkit/operatorkit/examples/internal/demotest"
)

// endVariable says how the story ends.
const endVariable = "STORY_ENDS"

func TestMain(m *testing.M) {
	demotest.Tell(func() demo.Story {
		return demo.Story{Name: "short", Look: "kubectl get all", Tell: func(ctx context.Context, d *demo.Demo) error {
			switch os.Getenv(endVariable) {
			case "badly":
				return errors.New("the page never appeared")
			case "never":
				d.Step("waiting for ever")
				<-ctx.Done()
			}
			return nil
		}}
	})
	os.Exit(m.Run())
}

func TestOnceEndsWithZeroOnlyIfEverythingHasConverged(t *testing.T) {
	t.Run("it has", func(t *testing.T) {
		t.Parallel()
		if story := demotest.Once(t); !strings.Contains(story, "done: everything has converged") {
			t.Errorf("the story does not say so:\n%s", story)
		}
	})
	t.Run("it has not", func(t *testing.T) {
		t.Parallel()
		cmd := demotest.Command(t, "--once")
		cmd.Env = append(cmd.Env, endVariable+"=badly")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Run(); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(stderr.String(), "failed: the page never appeared") {
			t.Errorf("%v, and it says\n%s", err, &stderr)
		}
	})
	t.Run("it was interrupted", func(t *testing.T) {
		t.Parallel()
		cmd := demotest.Command(t, "--once")
		cmd.Env = append(cmd.Env, endVariable+"=never")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			if strings.Contains(lines.Text(), "waiting for ever") {
				_ = cmd.Process.Signal(syscall.SIGINT)
			}
		}
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(stderr.String(), "interrupted") {
			t.Errorf("%v, and it says\n%s", err, &stderr)
		}
	})
}
