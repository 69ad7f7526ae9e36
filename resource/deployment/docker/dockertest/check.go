package dockertest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// programs are what engines are made of, with the packages of Debian that have them.
var programs = []struct{ name, pkg string }{
	{"dockerd", "docker.io"}, {"containerd", "containerd"}, {"runc", "runc"}, {"docker-proxy", "docker.io"}, {"ip", "iproute2"},
	{"iptables", "iptables"},
}

// Check returns why engines can't be started here, and what to do about it, or nil.
func Check() error {
	if runtime.GOOS != "linux" {
		return errors.New("engines for tests run on Linux only")
	}
	var missing, packages []string
	for _, p := range programs {
		if _, err := find(p.name); err != nil {
			missing, packages = append(missing, p.name), append(packages, p.pkg)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("there is no %s: install it, for example by apt-get install %s", strings.Join(missing, ", "), strings.Join(packages, " "))
	}
	if os.Geteuid() != 0 {
		return errors.New("engines need root: run it with sudo -E")
	}
	return nil
}

// find returns the path of a program, which may be where only root looks for programs.
func find(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		for _, dir := range []string{"/usr/sbin/", "/sbin/", "/usr/local/sbin/"} {
			if path, other := exec.LookPath(dir + name); other == nil {
				return path, nil
			}
		}
	}
	return path, err
}

// Require skips a test where engines can't be started, and fails it if CI is true. With -short it skips all tests but the samples, which
// are names of tests.
func Require(t testing.TB, samples ...string) {
	t.Helper()
	if testing.Short() && !slices.Contains(samples, t.Name()) {
		t.Skip("left to make test-all: it needs real engines")
	}
	need(t)
}

// need skips a test where engines can't be started, and fails it if CI is true.
func need(t testing.TB) {
	t.Helper()
	if err := Check(); err != nil {
		lack(t, err)
	}
}

// lack skips a test that lacks something, and fails it if CI is true.
func lack(t testing.TB, err error) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(err)
	}
	t.Skip(err)
}

// Start starts engines for a test, which end with it. Tests call Require before, so that -short skips them.
func Start(t testing.TB, n int) []*Engine {
	t.Helper()
	need(t)
	engines, err := Run(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := Close(engines); err != nil {
			t.Error(err)
		}
	})
	return engines
}
