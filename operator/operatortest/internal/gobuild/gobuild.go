// Package gobuild shows how a long "go build" gets on.
package gobuild

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

const (
	// progressPeriod is the time between two lines of progress.
	progressPeriod = 3 * time.Second
	// errorLines is how many lines of a failed command's output are shown.
	errorLines = 20
)

// Run runs a command that is "go build -v", and writes a line of progress every few seconds: for how long it has built what, and how many
// packages of about so many in all. Those in Go's cache are not counted. The error of a build that fails has its last lines.
func Run(cmd *exec.Cmd, what string, packages int, progress io.Writer) error {
	reader, writer, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make a pipe for the output of %s: %w", cmd, err)
	}
	defer func() { _ = reader.Close() }()
	cmd.Stdout, cmd.Stderr = writer, writer
	err = cmd.Start()
	_ = writer.Close()
	if err != nil {
		return fmt.Errorf("build %s: %w", what, err)
	}
	last := watch(reader, what, packages, progress)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("build %s: %w; last lines of go build:\n%s", what, err, strings.Join(last, "\n"))
	}
	return nil
}

// watch reads the output of go build -v, which names each package when it is compiled and each module when it is downloaded, until its
// end. It returns the last lines read. A build that is over before the first line is due is not worth a word.
func watch(output io.Reader, what string, all int, progress io.Writer) []string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(output); scanner.Scan(); {
			lines <- scanner.Text()
		}
		_, _ = io.Copy(io.Discard, output) // a line too long for the scanner
	}()
	ticker := time.NewTicker(progressPeriod)
	defer ticker.Stop()
	start := time.Now()
	packages, now, told := 0, "looking for what is compiled already, or linking", false
	var last []string
	for {
		select {
		case line, more := <-lines:
			if !more {
				if told {
					fmt.Fprintf(progress, "build of %s ended after %s\n", what, time.Since(start).Round(time.Second))
				}
				return last
			}
			now = strings.TrimPrefix(line, "go: ")
			if !strings.Contains(line, " ") {
				packages++
			}
			last = append(last, line)
			last = last[max(0, len(last)-errorLines):]
		case <-ticker.C:
			if !told {
				fmt.Fprintf(progress, "building %s (once; some minutes)\n", what)
				told = true
			}
			fmt.Fprintf(progress, "building %s: %s, %d of at most about %d packages compiled, now %s\n",
				what, time.Since(start).Round(time.Second), packages, all, now)
		}
	}
}
