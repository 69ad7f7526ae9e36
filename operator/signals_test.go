package operator_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// TestFirstSignalEndsTheContextAndTheSecondTheProgram signals a child process, which runs the same
// test.
func TestFirstSignalEndsTheContextAndTheSecondTheProgram(t *testing.T) {
	if os.Getenv("SIGNALLED") != "" {
		ctx, stop := operator.Signals(context.Background())
		defer stop()
		fmt.Println("waiting")
		<-ctx.Done()
		// The end of the context comes just before the signals are given back, which nothing else tells.
		fmt.Println("ended")
		select {}
	}
	for _, first := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(first.String(), func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFirstSignalEndsTheContextAndTheSecondTheProgram$")
			cmd.Env = append(os.Environ(), "SIGNALLED=1")
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(stdout)
			for _, want := range []string{"waiting", "ended"} {
				if !lines.Scan() || lines.Text() != want {
					t.Fatalf("want %q, got %q", want, lines.Text())
				}
				if want == "waiting" {
					signal(t, cmd, first)
				}
			}
			// A signal that arrives before its default effect is restored is lost: send it until
			// the process has ended.
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			operatortest.Eventually(t, "the end of the process", func() bool {
				select {
				case err = <-ended:
					return true
				default:
					_ = cmd.Process.Signal(syscall.SIGTERM)
					return false
				}
			})
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
				t.Errorf("want an end by SIGTERM, got %v", err)
			}
		})
	}
}

func signal(t *testing.T, cmd *exec.Cmd, s os.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func TestSignalsEndWithTheParent(t *testing.T) {
	parent, cancel := context.WithCancel(context.Background())
	ctx, stop := operator.Signals(parent)
	defer stop()
	if ctx.Err() != nil {
		t.Fatal("ended at once")
	}
	cancel()
	<-ctx.Done()
}
