package dockertest

import (
	"errors"
	"sync"
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
	if _, err := find(caddy); err != nil {
		lack(t, errNoCaddy)
	}
}

// Caddy returns an image of the Caddy that is installed on this machine, with the libraries that it needs, for docker.Ingress. Tests call
// RequireCaddy before.
func Caddy(name string) Image {
	path := "/usr/bin/" + caddy
	return Image{Name: name, Env: []string{"PATH=/usr/bin"}, entrypoint: path, content: sync.OnceValues(func() ([]file, error) {
		program, err := find(caddy)
		if err != nil {
			return nil, errNoCaddy
		}
		return programAt(path, program)
	})}
}
