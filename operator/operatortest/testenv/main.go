// Command testenv runs a command, such as the tests of many packages, with one
// control plane for all of it:
//
//	testenv -- go test ./...
//
// The command finds the control plane through the environment variable
// OPERATORTEST_KUBECONFIG, which operatortest.Start looks at. Its value is the
// same each time, though the control plane is another one, so that Go's cache
// of test results stays good. Signals are passed on to the command, its exit
// code is that of testenv, and the control plane is stopped when it ends.
// ("go run" has exit code 1 for every failure; build testenv to see the
// others.)
//
//	testenv -build [-o bin/controlplane]
//
// only makes sure that the control plane's binary is built, and puts it where
// -o says; without -o, it prints where it is.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// exitFailure is the exit code when the command could not be run at all.
const exitFailure = 125

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("testenv", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintf(stderr, "Usage:\n  testenv [--] command [argument ...]\n  testenv -build [-o file]\n\n")
		flags.PrintDefaults()
	}
	onlyBuild := flags.Bool("build", false, "only build the control plane's binary, or find it built")
	output := flags.String("o", "", "with -build: where to put the binary")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	command := flags.Args()
	if *onlyBuild == (len(command) > 0) {
		flags.Usage()
		return 2
	}

	if *onlyBuild {
		if err := buildBinary(*output, stdout); err != nil {
			fmt.Fprintf(stderr, "testenv: %v\n", err)
			return exitFailure
		}
		return 0
	}
	code, err := runCommand(command)
	if err != nil {
		fmt.Fprintf(stderr, "testenv: %v\n", err)
		return exitFailure
	}
	return code
}

func buildBinary(output string, stdout io.Writer) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	binary, err := operatortest.Binary(ctx, operatortest.Config{})
	if err != nil {
		return err
	}
	if output == "" {
		_, err := fmt.Fprintln(stdout, binary)
		return err
	}
	return place(binary, output)
}

// runCommand runs the command with a control plane and returns its exit code.
func runCommand(command []string) (code int, err error) {
	cmd := exec.Command(command[0], command[1:]...) //nolint:gosec // running it is what the user asks for
	if cmd.Err != nil {
		return 0, fmt.Errorf("run %s: %w", command[0], cmd.Err)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	interrupted := make(chan struct{})
	go func() {
		defer close(interrupted)
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	instance, err := operatortest.Run(ctx, operatortest.Config{})
	cancel()
	<-interrupted
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, instance.Stop(context.Background())) }()
	kubeconfig, forget, err := publish(instance.Kubeconfig())
	if err != nil {
		return 0, err
	}
	defer forget()

	cmd.Env = append(os.Environ(), operatortest.KubeconfigVariable+"="+kubeconfig)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("run %s: %w", command[0], err)
	}
	ended := make(chan struct{})
	go func() {
		for {
			select {
			case s := <-signals:
				_ = cmd.Process.Signal(s)
			case <-ended:
				return
			}
		}
	}()
	err = cmd.Wait()
	close(ended)
	return exitCode(cmd, err)
}

// exitCode is the command's own or, when a signal ended it, the shell's word
// for that.
func exitCode(cmd *exec.Cmd, err error) (int, error) {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, fmt.Errorf("run %s: %w", cmd.Path, err)
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return cmd.ProcessState.ExitCode(), nil
}

// place makes output the same file as binary, by a link where that is possible.
// It appears at once and complete, also when it is there and runs.
func place(binary, output string) error {
	if err := os.MkdirAll(filepath.Dir(output), 0o750); err != nil {
		return fmt.Errorf("make the folder of %s: %w", output, err)
	}
	temporary := fmt.Sprintf("%s.%d", output, os.Getpid())
	defer func() { _ = os.Remove(temporary) }()
	if os.Link(binary, temporary) != nil {
		if err := copyFile(binary, temporary, 0o700); err != nil {
			return fmt.Errorf("copy %s to %s: %w", binary, temporary, err)
		}
	}
	if err := os.Rename(temporary, output); err != nil {
		return fmt.Errorf("put the binary into place: %w", err)
	}
	return nil
}

func copyFile(from, to string, mode os.FileMode) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	_, err = io.Copy(target, source)
	return err
}
