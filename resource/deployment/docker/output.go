package docker

import (
	stdbytes "bytes"
	"context"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	moby "github.com/moby/moby/client"

	"github.com/operatorkit/operatorkit/context/secretscontext"
)

// LogOptions says what of the output of a container is asked for.
type LogOptions struct {
	// Tail is how many of the last lines there are at most. Default: all.
	Tail int
	// Since leaves out what is older. Default: nothing is left out.
	Since time.Time
	// Follow goes on with what is written from now on, until the container or the context ends.
	Follow bool
	// Timestamps begin each line.
	Timestamps bool
}

// Logs writes what a container has written to its two outputs, line by line, without values that are known to be secret. A line comes in
// one write, with its end. The container is one of whoever ctx says.
func (c *Client) Logs(ctx context.Context, machineID, name string, options LogOptions, stdout, stderr io.Writer) error {
	return c.on(ctx, machineID, func(ctx context.Context, engine *moby.Client) error {
		own, err := c.own(ctx, engine, name)
		if err != nil {
			return err
		}
		asked := moby.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Follow: options.Follow, Timestamps: options.Timestamps}
		if options.Tail > 0 {
			asked.Tail = strconv.Itoa(options.Tail)
		}
		if !options.Since.IsZero() {
			asked.Since = options.Since.Format(time.RFC3339Nano)
		}
		logs, err := engine.ContainerLogs(ctx, own.ID, asked)
		if err != nil {
			return err
		}
		defer func() { _ = logs.Close() }()
		var secrets secretscontext.Vocabulary
		secrets.Add(secretsIn(own)...)
		out, errs := &lines{to: stdout, scrub: secrets.Scrub}, &lines{to: stderr, scrub: secrets.Scrub}
		if _, err := stdcopy.StdCopy(out, errs, logs); err != nil && ctx.Err() == nil {
			return err
		}
		if err := out.flush(); err != nil {
			return err
		}
		return errs.flush()
	})
}

// lines is a writer that passes on whole lines.
type lines struct {
	to    io.Writer
	scrub func(string) string
	rest  []byte
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		end := stdbytes.IndexByte(l.rest, '\n')
		if end < 0 {
			return len(p), nil
		}
		if _, err := io.WriteString(l.to, l.scrub(string(l.rest[:end+1]))); err != nil {
			return 0, err
		}
		l.rest = l.rest[end+1:]
	}
}

// flush passes on a last line that has no end.
func (l *lines) flush() error {
	if len(l.rest) == 0 {
		return nil
	}
	_, err := io.WriteString(l.to, l.scrub(strings.TrimSuffix(string(l.rest), "\n"))+"\n")
	return err
}

// Exec runs a program in a container of whoever ctx says, and returns its exit code. The program reads stdin, unless that is nil, to its
// end, and has no terminal. When ctx ends, its outputs do; the program itself goes on until it notices that.
func (c *Client) Exec(ctx context.Context, machineID, name string, command []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	var code int
	err := c.on(ctx, machineID, func(ctx context.Context, engine *moby.Client) error {
		own, err := c.own(ctx, engine, name)
		if err != nil {
			return err
		}
		code, err = run(ctx, engine, own.ID, command, stdin, stdout, stderr)
		return err
	})
	return code, err
}

// run is Exec for a container that is known by its ID.
func run(ctx context.Context, engine *moby.Client, id string, command []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	created, err := engine.ExecCreate(ctx, id, moby.ExecCreateOptions{
		Cmd: command, AttachStdin: stdin != nil, AttachStdout: true, AttachStderr: true,
	})
	if err != nil {
		return 0, err
	}
	attached, err := engine.ExecAttach(ctx, created.ID, moby.ExecAttachOptions{})
	if err != nil {
		return 0, err
	}
	defer attached.Close()
	// What is read from here ends with the connection.
	defer context.AfterFunc(ctx, attached.Close)()
	if stdin != nil {
		go func() {
			// An error is one of who reads, which shows in what it writes and in how it ends.
			_, _ = io.Copy(attached.Conn, stdin)
			_ = attached.CloseWrite()
		}()
	}
	if _, err := stdcopy.StdCopy(stdout, stderr, attached.Reader); err != nil {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		return 0, err
	}
	ended, err := engine.ExecInspect(ctx, created.ID, moby.ExecInspectOptions{})
	return ended.ExitCode, err
}
