package machines_test

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/operatorkit/operatorkit/examples/internal/demotest"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/dockertest"
)

func TestDemo(t *testing.T) {
	t.Run("it says what to install without Docker", saysWhatToInstall)
	t.Run("a service comes up after its migration", comesUp)
}

func comesUp(t *testing.T) {
	dockertest.Require(t)
	story := demotest.Once(t)
	for _, want := range []string{
		// What is going to be done is told before it is, container by container.
		`(?s)\+ Container engine-\d/migrate-\w{5}: run the job to its end\n.*✓ the migration has completed`,
		`(?s)\+ Container engine-\d/shop-\w{5}\n.*6 to create, 1 to update, 0 to delete\n.*✓ all containers work`,
		`done: everything has converged`, `watch it at +http://127.0.0.1:\d+/\n`,
	} {
		if !regexp.MustCompile(want).MatchString(story) {
			t.Errorf("the story lacks %s", want)
		}
	}
}

func saysWhatToInstall(t *testing.T) {
	if _, err := os.Stat("/usr/sbin/containerd"); err == nil {
		t.Skip("all that engines are made of is found without the PATH")
	}
	cmd := demotest.Command(t, "--once")
	cmd.Env = append(cmd.Env, "PATH="+t.TempDir())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	if err == nil || !strings.Contains(stderr.String(), "this example needs Docker engines: ") {
		t.Errorf("%v, and it says %q", err, &stderr)
	}
}
