package dockertest

import (
	_ "embed" // the program of the image
	"errors"
	"os"
	"path/filepath"
	"slices"
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
	if _, _, err := postgresql(); err != nil {
		lack(t, err)
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
	return Image{Name: name, Health: []string{"health"}, HealthRetries: 30, content: sync.OnceValues(func() ([]file, error) {
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
	})}
}

// WithPSQL adds the client of PostgreSQL, psql, to an image: at /usr/bin/psql.
func WithPSQL(image Image) Image {
	without := image
	image.content = sync.OnceValues(func() ([]file, error) {
		files, err := without.read()
		if err != nil {
			return nil, err
		}
		folder, _, err := postgresql()
		if err != nil {
			return nil, err
		}
		client, err := programAt("/usr/bin/psql", filepath.Join(folder, "bin/psql"))
		return slices.Concat(files, client), err
	})
	return image
}
