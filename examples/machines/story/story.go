// Package story shows deployments onto machines, on a control plane and three Docker engines of its own: a job migrates a database, and a
// service with six containers comes up after it.
package story

import (
	"context"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/examples/internal/demo"
	example "github.com/operatorkit/operatorkit/examples/machines"
	"github.com/operatorkit/operatorkit/operator/machines"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/dockertest"
)

// count is how many engines there are.
const count = 3

// New returns the story.
func New() demo.Story {
	var engines []*dockertest.Engine
	return demo.Story{
		Name:    "machines",
		Require: requireEngines,
		Operator: example.Config(machines.Config{
			// Short, so that a machine that stops, or starts again, is noticed within seconds.
			Heartbeat:      time.Second,
			BackOffFactory: func() backoff.BackOff { return backoff.NewConstantBackOff(500 * time.Millisecond) },
		}),
		Prepare: func(ctx context.Context, d *demo.Demo) (err error) {
			engines, err = startEngines(ctx, d)
			return err
		},
		Tell: func(ctx context.Context, d *demo.Demo) error {
			if err := connect(ctx, d, engines); err != nil {
				return err
			}
			return deploy(ctx, d)
		},
		Look: "bin/controlplane kubectl -n machines get machines,machineservices",
		Try: []string{
			"bin/controlplane kubectl -n machines get machineservice shop -o yaml",
			update("2") + "     # two containers at a time, each new one before an old one goes",
			update("bad") + "   # it starts and does not work: it is rolled back",
		},
	}
}

func update(version string) string {
	return `bin/controlplane kubectl -n machines patch machineservice shop --type=merge -p '{"spec":{"container":{"image":"shop:` + version + `"}}}'`
}

// requireEngines says what Docker engines lack here.
func requireEngines() error {
	if err := dockertest.Check(); err != nil {
		return fmt.Errorf("this example needs Docker engines: %w", err)
	}
	return nil
}

// startEngines starts the engines, and gives them the images.
func startEngines(ctx context.Context, d *demo.Demo) ([]*dockertest.Engine, error) {
	d.Step("starting %d Docker engines, and building an image for them", count)
	engines, err := dockertest.Run(ctx, count)
	if err != nil {
		return nil, err
	}
	d.Go("the engines", func(ctx context.Context) error {
		<-ctx.Done()
		return dockertest.Close(engines)
	})
	for _, e := range engines {
		if err := e.Load(ctx, example.Images()...); err != nil {
			return nil, err
		}
	}
	return engines, nil
}

// connect makes the engines known as Machines.
func connect(ctx context.Context, d *demo.Demo, engines []*dockertest.Engine) error {
	served := func(ctx context.Context) (bool, error) {
		return d.Client.List(ctx, &v1alpha1.MachineServiceList{}, client.InNamespace(d.Namespace)) == nil, nil
	}
	if err := d.Wait(ctx, "the operator has brought its custom resource definitions along", served); err != nil {
		return err
	}
	d.Step("making the engines known as Machines")
	for _, e := range engines {
		if err := d.Client.Create(ctx, example.NewMachine(d.Namespace, e)); err != nil {
			return err
		}
	}
	for _, e := range engines {
		err := d.Until(ctx, e.Name()+" is connected", func(ctx context.Context) (bool, error) {
			m := &v1alpha1.Machine{}
			err := d.Client.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: e.Name()}, m)
			return err == nil && meta.IsStatusConditionTrue(m.Status.Conditions, machines.ConditionReady), err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// deploy creates the job and the service that depends on it.
func deploy(ctx context.Context, d *demo.Demo) error {
	job, service := example.NewMigration(d.Namespace, "1"), example.NewService(d.Namespace, "1")
	service.Spec.DependsOn = []string{job.Name}
	for _, step := range []struct {
		text, done, reason string
		create             *v1alpha1.MachineService
	}{
		{"creating a job that migrates the database", "the migration has completed", machines.ReasonCompleted, job},
		{fmt.Sprintf("creating a service with %d containers of shop:1", example.Replicas), "all containers work", machines.ReasonDeployed, service},
	} {
		d.Step("%s", step.text)
		if err := d.Plan(ctx, step.create); err != nil {
			return err
		}
		if err := d.Client.Create(ctx, step.create); err != nil {
			return err
		}
		err := d.Until(ctx, step.done, func(ctx context.Context) (bool, error) {
			now := &v1alpha1.MachineService{}
			err := d.Client.Get(ctx, client.ObjectKeyFromObject(step.create), now)
			ready := meta.FindStatusCondition(now.Status.Conditions, machines.ConditionReady)
			return err == nil && ready != nil && ready.Reason == step.reason && ready.ObservedGeneration == now.Generation, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
