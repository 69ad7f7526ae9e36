package dockertest

import (
	_ "embed" // the program of the image
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// errNoPostgreSQL says what to do without it.
var errNoPostgreSQL = errors.New("there is no PostgreSQL: install it, for example by apt-get install postgresql")

// postgresql returns where Debian's package has the newest PostgreSQL that is installed, and what its programs share.
func postgresql() (folder, shared string, err error) {
	// An error of Glob would be about the pattern.
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(found) == 0 {
		return "", "", errNoPostgreSQL
	}
	folder = filepath.Dir(filepath.Dir(found[len(found)-1]))
	return folder, filepath.Join("/usr/share/postgresql", filepath.Base(folder)), nil
}

// RequirePostgreSQL is Require for tests that use PostgreSQL.
func RequirePostgreSQL(t testing.TB, samples ...string) {
	t.Helper()
	Require(t, samples...)
	_, _, err := postgresql()
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatal(err)
	default:
		t.Skip(err)
	}
}

// postgresqlProgram is what runs in the image. It is built from here, so that Go's cache of test results knows of it.
//
//go:embed postgresql/main.go
var postgresqlProgram []byte

var buildPostgresql = sync.OnceValues(func() ([]file, error) {
	return compileSource("the program of PostgreSQL's image", postgresqlProgram)
})

// PostgreSQL returns an image of the PostgreSQL that is installed on this machine, with a health check. It has its database in the volume
// /var/lib/postgresql/data, and serves it at port 5432. The environment variable POSTGRES_PASSWORD is the password of the user postgres.
// Tests call RequirePostgreSQL before.
func PostgreSQL(name string) Image {
	return Image{Name: name, Health: []string{"health"}, HealthRetries: 30, content: func() ([]file, error) {
		program, err := buildPostgresql()
		if err != nil {
			return nil, err
		}
		folder, share, err := postgresql()
		if err != nil {
			return nil, err
		}
		var paths []string
		for _, name := range []string{"bin/postgres", "bin/initdb", "bin/pg_isready", "lib/plpgsql.so", "lib/dict_snowball.so"} {
			paths = append(paths, filepath.Join(folder, name))
		}
		server, err := withLibraries(paths...)
		if err != nil {
			return nil, err
		}
		shared, err := filesIn(share)
		if err != nil {
			return nil, err
		}
		// Programs of PostgreSQL start others by a shell, and want to know the name of their user.
		shell, err := os.ReadFile("/bin/sh")
		return slices.Concat(program, server, shared, []file{
			{path: "/bin/sh", mode: 0o755, content: shell},
			{path: "/etc/passwd", mode: 0o644, content: []byte("root:x:0:0::/:/bin/sh\npostgres:x:999:999::/:/bin/sh\n")},
		}), err
	}}
}

// WithPSQL adds the client of PostgreSQL, psql, to an image: at /usr/bin/psql.
func WithPSQL(image Image) Image {
	without := image
	image.content = func() ([]file, error) {
		files, err := without.read()
		if err != nil {
			return nil, err
		}
		folder, _, err := postgresql()
		if err != nil {
			return nil, err
		}
		path := filepath.Join(folder, "bin/psql")
		client, err := withLibraries(path)
		for i := range client {
			if client[i].path == path {
				client[i].path = "/usr/bin/psql"
			}
		}
		return append(files, client...), err
	}
	return image
}

// withLibraries returns programs and libraries of the system, with the libraries that they need.
func withLibraries(paths ...string) ([]file, error) {
	var files []file
	for _, path := range paths {
		content, err := os.ReadFile(path) //nolint:gosec // a program of the system
		if err != nil {
			return nil, err
		}
		libraries, err := librariesOf(path)
		if err != nil {
			return nil, err
		}
		files = append(append(files, libraries...), file{path: path, mode: 0o755, content: content})
	}
	// What several need is there once.
	slices.SortStableFunc(files, func(a, b file) int { return strings.Compare(a.path, b.path) })
	return slices.CompactFunc(files, func(a, b file) bool { return a.path == b.path }), nil
}

// filesIn returns all files of a folder.
func filesIn(folder string) ([]file, error) {
	var files []file
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path) //nolint:gosec // a file of the system
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a link to what is not installed
		}
		files = append(files, file{path: path, mode: 0o644, content: content})
		return err
	})
	return files, err
}
