// Command postgresql runs the PostgreSQL of its image: it makes the database in the folder of its volume, unless one is there, and has the server
// serve it at port 5432 until it is asked to end. The variable POSTGRES_PASSWORD is the password of the user postgres. With the argument "health" it says
// whether the server takes connections.
//
// It needs nothing but the standard library, so that it is built where the module is not.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
)

const (
	// programs are where Debian has them, in the version that is in the image.
	programs = "/usr/lib/postgresql/*/bin/"
	// data is where the volume is, and user is who the server is, which can't be root.
	data = "/var/lib/postgresql/data"
	user = 999
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "postgresql:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 1 && args[0] == "health" {
		return command("pg_isready", "--host=127.0.0.1", "--quiet").Run()
	}
	database := filepath.Join(data, "database")
	if _, err := os.Stat(database); errors.Is(err, fs.ErrNotExist) {
		if err := create(database); err != nil {
			return fmt.Errorf("make the database: %w", err)
		}
	} else if err != nil {
		return err
	}
	server := command("postgres", "-D", database, "-c", "listen_addresses=*", "-c", "unix_socket_directories=", "-c", "jit=off")
	if err := server.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	select {
	case err := <-ended:
		return fmt.Errorf("the server has ended: %w", err)
	case <-ctx.Done():
	}
	// It ends its connections, and does not wait for who has them.
	return errors.Join(server.Process.Signal(syscall.SIGINT), <-ended)
}

// create makes a database that is there whole or not at all.
func create(database string) error {
	draft, password := database+"-draft", database+"-password"
	if err := errors.Join(os.RemoveAll(draft), os.Chown(data, user, user), os.WriteFile(password, []byte(os.Getenv("POSTGRES_PASSWORD")), 0o600)); err != nil {
		return err
	}
	if err := os.Chown(password, user, user); err != nil {
		return err
	}
	err := command("initdb", "--pgdata="+draft, "--username=postgres", "--pwfile="+password, "--auth=scram-sha-256", "--encoding=UTF8", "--no-locale").Run()
	if err := errors.Join(err, os.Remove(password)); err != nil {
		return err
	}
	access, err := os.OpenFile(filepath.Join(draft, "pg_hba.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = access.WriteString("host all all all scram-sha-256\n")
	if err := errors.Join(err, access.Close()); err != nil {
		return err
	}
	return os.Rename(draft, database)
}

// command is a program of PostgreSQL, as its user.
func command(name string, args ...string) *exec.Cmd {
	path := programs + name
	if found, _ := filepath.Glob(path); len(found) > 0 { // an error would be about the pattern
		path = found[0]
	}
	cmd := exec.Command(path, args...) //nolint:gosec // a program of the image
	cmd.Stdout, cmd.Stderr, cmd.Dir = os.Stdout, os.Stderr, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	return cmd
}
