package machines_test

import (
	"bytes"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/operatorkit/operatorkit/examples/internal/demotest"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/dockertest"
)

// requests is what the story says about the requests that were sent since the beginning.
var requests = regexp.MustCompile(`✓ (\d+) requests: (\d+) by version 1, (\d+) by version 2, 0 failed\n`)

func TestDemo(t *testing.T) {
	t.Run("it says what to install without Docker", saysWhatToInstall)
	t.Run("no request fails while the service is updated, rolled back, and loses a machine", noRequestFails)
}

func noRequestFails(t *testing.T) {
	dockertest.Require(t)
	story := demotest.Once(t)
	for _, want := range []string{
		// What is going to be done is told before it is, container by container.
		`(?s)\+ Container engine-\d/migrate-\w{5}: run the job to its end\n.*✓ the migration has completed.*✓ all containers work`,
		`(?s)updating it to shop:2.*✓ the migration to version 2 has completed.*✓ all containers are of shop:2`,
		`(?s)\+ Container engine-\d/shop-\w{5}\n.*6 to create, 1 to update, 0 to delete\n.*✓ all containers work`,
		`(?s)~ Container engine-1/shop-\w{5}: replaces shop-\w{5}, start-first\n +~ container.image: "shop:1" -> "shop:2"\n`,
		`service shop: 6 of 6 containers work and are shop:2`,
		`(?s)updating it to shop:bad.*✓ it is rolled back and not tried again`,
		`(?s)losing engine-3.*✓ its containers are waited for, and not made anew.*starting engine-3 again.*✓ all containers work again`,
		`done: everything has converged`, `watch it at +http://127.0.0.1:\d+/\n`,
	} {
		if !regexp.MustCompile(want).MatchString(story) {
			t.Errorf("the story lacks %s", want)
		}
	}

	// After the update, after the bad version, and at the end; each time some more.
	told := requests.FindAllStringSubmatch(story, -1)
	if len(told) != 3 {
		t.Fatalf("the story tells %d times that no request has failed:\n%s", len(told), story)
	}
	before := 0
	for _, counts := range told {
		all, old, updated := number(t, counts[1]), number(t, counts[2]), number(t, counts[3])
		if old == 0 || updated == 0 || all <= before {
			t.Errorf("not all were asked: %s", counts[0])
		}
		before = all
	}
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
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
