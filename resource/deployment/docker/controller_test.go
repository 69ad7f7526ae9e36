package docker_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/dockertest"
)

// controllerOf makes a controller of this program: it has what one needs, in JSON.
const controllerOf = "DOCKER_TEST_CONTROLLER"

type controlled struct {
	Machines []docker.Machine
	Spec     api.ServiceSpec
}

// controller deploys a service, and says what it does, line by line.
func controller() int {
	var c controlled
	if err := json.Unmarshal([]byte(os.Getenv(controllerOf)), &c); err != nil {
		fmt.Println(err)
		return 1
	}
	cli, err := docker.New(docker.Config{Machines: c.Machines})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer func() { _ = cli.Close() }()
	d := deployment.NewDeployment(cli, c.Spec, nil)
	d.Progress = func(e deployment.ProgressEvent) { fmt.Println(e.Status, e.Operation) }
	if _, err := d.Run(context.Background()); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("done")
	return 0
}

// TestAControllerThatIsKilledIsGoneOnWith kills a controller at several points of an update.
func TestAControllerThatIsKilledIsGoneOnWith(t *testing.T) {
	for name, at := range map[string]func(k *kit, line string) bool{
		"when an operation has begun": func(_ *kit, line string) bool { return strings.HasPrefix(line, "started ~ replace") },
		"when a container of the new version is there": func(k *kit, line string) bool {
			if !strings.HasPrefix(line, "started ~ replace") {
				return false
			}
			k.until("a container of the new version", func() bool { return strings.Contains(strings.Join(k.now("web"), "\n"), image2) })
			return true
		},
		"between two operations": func(_ *kit, line string) bool { return strings.HasPrefix(line, "done ~ replace") },
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			k.mustDeploy(spec(image1, 3), nil)
			next := spec(image2, 3)
			next.Update.Parallelism = 1
			if last := k.kill(controlled{Machines: dockertest.Machines(k.engines), Spec: next}, at); last == "done" {
				t.Fatal("it was done before it was killed")
			}
			if have := k.now("web"); len(have) < 3 {
				t.Errorf("there are only %q", have)
			}
			k.mustDeploy(next, nil)
			k.mustHave("web", onEach(image2, "healthy")...)
		})
	}
}

// kill runs a controller, kills it at a line, and returns the last one.
func (k *kit) kill(c controlled, at func(k *kit, line string) bool) string {
	k.Helper()
	text, err := json.Marshal(c)
	k.must(err)
	cmd := exec.CommandContext(k.ctx, os.Args[0])
	cmd.Env = append(os.Environ(), controllerOf+"="+string(text))
	out, err := cmd.StdoutPipe()
	k.must(err)
	k.must(cmd.Start())
	last := ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		last = lines.Text()
		if at(k, last) {
			break
		}
	}
	k.must(cmd.Process.Kill())
	_ = cmd.Wait()
	return last
}
