package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/dockertest"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
)

// machineServices are the services on machines that are planned and updated.
type machineServices struct {
	// containers is how many are planned, from few to many.
	containers []int32
	// engines is how many Docker engines there are, and replicas how many containers they have together, which are updated as
	// many at once as each of parallelism says.
	engines     int
	replicas    int32
	parallelism []int
}

// deployments measures how long it takes to plan the update of a service on machines, and how that grows with its containers; and
// how much faster it is to replace several containers at once, on Docker engines.
func deployments(ctx context.Context, e *environment) ([]line, error) {
	var contenders []contender
	for _, containers := range e.machines.containers {
		contenders = append(contenders, planning(containers))
	}
	s, err := e.compare(ctx, "deployment", contenders...)
	if err != nil {
		return nil, err
	}
	var lines []line
	few := e.machines.containers[0]
	for _, containers := range e.machines.containers {
		what := fmt.Sprintf("plan of %d containers: ", containers)
		one := series{operatorKit: s[ofContainers(containers)]}
		lines = append(lines, reportLine(what+"time per container", inMicroseconds, one, nanoseconds),
			reportLine(what+"allocations per container", counted, one, allocations))
		if containers > few {
			lines = append(lines, line{
				Measure: fmt.Sprintf("plan of %d containers to one of %d: time per container", containers, few), Unit: counted,
				Ratio: s.ratio(ofContainers(containers), ofContainers(few), nanoseconds),
			}, line{
				Measure: fmt.Sprintf("plan of %d containers to one of %d: allocations per container", containers, few), Unit: counted,
				Ratio: s.ratio(ofContainers(containers), ofContainers(few), allocations),
			}.ratioAtMost(2))
		}
	}
	updates, err := containerUpdates(ctx, e)
	return append(lines, updates...), err
}

func ofContainers(containers int32) string { return strconv.Itoa(int(containers)) + " containers" }

// planning plans for a version that replaces all containers, of which each machine has ten.
func planning(containers int32) contender {
	const each = 10
	spec := machineService("example.com/app:1", containers)
	spec.SetDefaults()
	state := &scheduler.ClusterState{}
	for i := range int(containers) / each {
		m := &scheduler.Machine{Machine: api.Machine{ID: strconv.Itoa(i), Name: "machine-" + strconv.Itoa(i)}}
		for j := range each {
			name := fmt.Sprintf("app-%d-%d", i, j)
			m.Inventory.Containers = append(m.Inventory.Containers, api.Container{
				ID: name, Name: name, ServiceID: "app", ServiceName: spec.Name, Spec: spec, State: api.ContainerRunning,
			})
		}
		state.Machines = append(state.Machines, m)
	}
	next := spec.Clone()
	next.Container.Image = "example.com/app:2"
	next.Container.PullPolicy = api.PullMissing
	return contender{ofContainers(containers), int(containers), func(ctx context.Context, b *testing.B) error {
		b.StartTimer()
		plan, err := (&deployment.RollingStrategy{State: state}).Plan(ctx, nil, nil, next)
		b.StopTimer()
		if err == nil && plan.Empty() {
			err = errors.New("the plan is empty")
		}
		return err
	}}
}

func machineService(image string, replicas int32) api.ServiceSpec {
	return api.ServiceSpec{
		Name: "app", Replicas: &replicas, Container: api.ContainerSpec{Image: image, PullPolicy: api.PullNever},
		Update: api.UpdateConfig{Monitor: &metav1.Duration{Duration: time.Millisecond}},
	}
}

// containerUpdates updates a service on Docker engines once for each parallelism, because it takes its time.
func containerUpdates(ctx context.Context, e *environment) (lines []line, err error) {
	what := fmt.Sprintf("update of %d containers on %d engines", e.machines.replicas, e.machines.engines)
	if err := dockertest.Check(); err != nil {
		return []line{{Measure: what + ": skipped, " + err.Error()}}, nil
	}
	engines, err := dockertest.Run(ctx, e.machines.engines)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dockertest.Close(engines)) }()
	names := []string{"example.com/app:1", "example.com/app:2"}
	var images []dockertest.Image
	for _, name := range names {
		image := dockertest.App(name, map[string]string{"VERSION": name})
		// More checks would keep the processors busy.
		image.HealthInterval = time.Second
		images = append(images, image)
	}
	for _, engine := range engines {
		if err := engine.Load(ctx, images...); err != nil {
			return nil, err
		}
	}
	cli, err := docker.New(docker.Config{Machines: dockertest.Machines(engines)})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cli.Close()) }()
	var contenders []contender
	for _, parallelism := range e.machines.parallelism {
		contenders = append(contenders, contender{atOnce(parallelism), 1, func(ctx context.Context, b *testing.B) error {
			old, next := machineService(names[0], e.machines.replicas), machineService(names[1], e.machines.replicas)
			old.Update.Parallelism, next.Update.Parallelism = int(e.machines.replicas), parallelism
			if _, err := deployment.NewDeployment(cli, old, nil).Run(ctx); err != nil {
				return err
			}
			d := deployment.NewDeployment(cli, next, nil)
			b.StartTimer()
			_, err := d.Run(ctx)
			b.StopTimer()
			return err
		}})
	}
	s, err := stopwatch{rounds: 1, progress: e.progress}.measure(ctx, "deployment", contenders...)
	if err != nil {
		return nil, err
	}
	first := e.machines.parallelism[0]
	for _, parallelism := range e.machines.parallelism {
		l := reportLine(fmt.Sprintf("%s, %s", what, atOnce(parallelism)), inMicroseconds, series{operatorKit: s[atOnce(parallelism)]}, nanoseconds)
		if parallelism != first {
			l.Ratio = s.ratio(atOnce(parallelism), atOnce(first), nanoseconds)
		}
		lines = append(lines, l)
	}
	return lines, nil
}

func atOnce(parallelism int) string { return strconv.Itoa(parallelism) + " at once" }
