package dockertest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// caddy is the name of the program.
const caddy = "caddy"

// errNoCaddy says what to do without it.
var errNoCaddy = errors.New("there is no caddy: install it, for example by apt-get install caddy")

// RequireCaddy is Require for tests that use Caddy.
func RequireCaddy(t testing.TB, samples ...string) {
	t.Helper()
	Require(t, samples...)
	if _, err := find(caddy); err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatal(errNoCaddy)
	}
	t.Skip(errNoCaddy)
}

// Caddy returns an image of the Caddy that is installed on this machine, with the libraries that it needs, for docker.Ingress. Tests call
// RequireCaddy before.
func Caddy(name string) Image {
	path := "/usr/bin/" + caddy
	return Image{Name: name, Env: []string{"PATH=/usr/bin"}, entrypoint: path, content: func() ([]file, error) {
		program, err := find(caddy)
		if err != nil {
			return nil, errNoCaddy
		}
		files, err := withLibraries(program)
		for i := range files {
			if files[i].path == program {
				files[i].path = path
			}
		}
		return files, err
	}}
}

// librariesOf returns what a program needs to run: nothing for one that is linked statically.
func librariesOf(program string) ([]file, error) {
	out, err := exec.Command("ldd", program).CombinedOutput() //nolint:gosec // a program of the system
	if strings.Contains(string(out), "not a dynamic executable") {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look which libraries %s needs: %w: %s", program, err, out)
	}
	var files []file
	for line := range strings.Lines(string(out)) {
		// "libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x…)", and the loader as "/lib64/ld-linux-x86-64.so.2 (0x…)".
		for _, field := range strings.Fields(line) {
			if !strings.HasPrefix(field, "/") {
				continue
			}
			content, err := os.ReadFile(field) //nolint:gosec // a library of the system
			if err != nil {
				return nil, err
			}
			files = append(files, file{path: field, mode: 0o755, content: content})
		}
	}
	return files, nil
}
