package story

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v4"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/examples/internal/demo"
	example "github.com/operatorkit/operatorkit/examples/machines"
	"github.com/operatorkit/operatorkit/operator/machines"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/dockertest"
)

const (
	// count is how many engines there are, clients how many requests are sent at once.
	count, clients = 3, 4
	// heartbeat is short, so that nobody waits for long until a machine is missed.
	heartbeat = time.Second
)

// retries is how machines that don't answer are tried again.
func retries() backoff.BackOff { return backoff.NewConstantBackOff(500 * time.Millisecond) }

// requireEngines says what Docker engines lack here.
func requireEngines() error {
	if err := dockertest.Check(); err != nil {
		return fmt.Errorf("this example needs Docker engines: %w", err)
	}
	return nil
}

// world is what the story is about.
type world struct {
	engines []*dockertest.Engine
	load    *example.Load
	service client.ObjectKey
}

// prepare starts the engines, and gives them the images.
func (w *world) prepare(ctx context.Context, d *demo.Demo) (err error) {
	d.Step("starting %d Docker engines, and building an image for them", count)
	if w.engines, err = dockertest.Run(ctx, count); err != nil {
		return err
	}
	d.Go("the engines", func(ctx context.Context) error {
		<-ctx.Done()
		return dockertest.Close(w.engines)
	})
	for _, e := range w.engines {
		if err := e.Load(ctx, example.Images()...); err != nil {
			return err
		}
	}
	w.service = client.ObjectKey{Namespace: d.Namespace, Name: "shop"}
	return nil
}

// tell tells the story.
func (w *world) tell(ctx context.Context, d *demo.Demo) error {
	for _, chapter := range []func(context.Context, *demo.Demo) error{w.machines, w.migrate, w.deploy, w.update, w.bad, w.lose} {
		if err := chapter(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) machines(ctx context.Context, d *demo.Demo) error {
	served := func(ctx context.Context) (bool, error) {
		return d.Client.List(ctx, &v1alpha1.MachineServiceList{}, client.InNamespace(d.Namespace)) == nil, nil
	}
	if err := d.Wait(ctx, "the operator has brought its custom resource definitions along", served); err != nil {
		return err
	}
	d.Step("making the engines known as Machines")
	for _, e := range w.engines {
		if err := d.Client.Create(ctx, example.NewMachine(d.Namespace, e)); err != nil {
			return err
		}
	}
	for _, e := range w.engines {
		if err := d.Until(ctx, e.Name()+" is connected", w.machine(d, e, "True")); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) migrate(ctx context.Context, d *demo.Demo) error {
	d.Step("creating a job that migrates the database, before the service that depends on it starts")
	job := example.NewMigration(d.Namespace, "1")
	if err := d.Plan(ctx, job); err != nil {
		return err
	}
	if err := d.Client.Create(ctx, job); err != nil {
		return err
	}
	return d.Until(ctx, "the migration has completed", is(d, client.ObjectKeyFromObject(job), "Ready", machines.ReasonCompleted))
}

func (w *world) deploy(ctx context.Context, d *demo.Demo) error {
	d.Step("creating a service with %d containers of shop:1", example.Replicas)
	service := example.NewService(d.Namespace, "1")
	service.Spec.DependsOn = []string{w.migration(d).Name}
	if err := d.Plan(ctx, service); err != nil {
		return err
	}
	if err := d.Client.Create(ctx, service); err != nil {
		return err
	}
	if err := d.Until(ctx, "all containers work", w.is(d, "Ready", machines.ReasonDeployed)); err != nil {
		return err
	}
	if err := w.draw(ctx, d); err != nil {
		return err
	}
	return w.ask(ctx, d)
}

// ask sends requests from now on, through a balancer.
func (w *world) ask(ctx context.Context, d *demo.Demo) error {
	engines, err := docker.New(docker.Config{
		Cluster: d.Namespace, Machines: dockertest.Machines(w.engines), Heartbeat: heartbeat, BackOffFactory: retries,
	})
	if err != nil {
		return err
	}
	address, err := demo.FreeAddress()
	if err != nil {
		return err
	}
	balancer := example.NewBalancer(engines, w.service.Name)
	d.Go("the balancer", func(ctx context.Context) error {
		return errors.Join(balancer.Run(ctx), engines.Close())
	})
	server := &http.Server{Addr: address, Handler: balancer, ReadHeaderTimeout: time.Minute}
	d.Go("the balancer's server", func(ctx context.Context) error {
		defer context.AfterFunc(ctx, func() { _ = server.Shutdown(context.WithoutCancel(ctx)) })()
		if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	first := example.NewLoad("http://" + address + "/")
	if err := d.Wait(ctx, "the balancer answers", func(ctx context.Context) (bool, error) { return first.Once(ctx) == nil, nil }); err != nil {
		return err
	}
	w.load = example.NewLoad("http://" + address + "/")
	d.Go("the requests", func(ctx context.Context) error { return w.load.Run(ctx, clients) })
	d.Note(fmt.Sprintf("%d clients ask http://%s/ again and again from now on", clients, address))
	return nil
}

func (w *world) update(ctx context.Context, d *demo.Demo) error {
	d.Step("updating it to shop:2, after a migration, two containers at a time, each new one before an old one goes")
	if err := d.Plan(ctx, example.NewService(d.Namespace, "2")); err != nil {
		return err
	}
	for _, key := range []client.ObjectKey{w.migration(d), w.service} {
		if err := image(ctx, d, key, "2"); err != nil {
			return err
		}
	}
	if err := d.Until(ctx, "the migration to version 2 has completed", is(d, w.migration(d), "Ready", machines.ReasonCompleted)); err != nil {
		return err
	}
	if err := d.Until(ctx, "all containers are of shop:2", w.is(d, "Ready", machines.ReasonDeployed)); err != nil {
		return err
	}
	answered := func(context.Context) (bool, error) { return w.load.Answered("2") > 0, nil }
	if err := d.Wait(ctx, "version 2 answers", answered); err != nil {
		return err
	}
	if err := w.draw(ctx, d); err != nil {
		return err
	}
	return w.noneFailed(ctx, d)
}

func (w *world) bad(ctx context.Context, d *demo.Demo) error {
	d.Step("updating it to shop:bad, which starts and does not work")
	if err := w.version(ctx, d, "bad"); err != nil {
		return err
	}
	if err := d.Until(ctx, "it is rolled back and not tried again", w.is(d, "Blocked", machines.ReasonRolledBack)); err != nil {
		return err
	}
	if err := w.noneFailed(ctx, d); err != nil {
		return err
	}
	d.Step("asking for shop:2 again")
	if err := w.version(ctx, d, "2"); err != nil {
		return err
	}
	return d.Until(ctx, "it is as it was", w.is(d, "Ready", machines.ReasonDeployed))
}

func (w *world) lose(ctx context.Context, d *demo.Demo) error {
	lost := w.engines[count-1]
	d.Step("losing %s", lost.Name())
	if err := lost.Stop(ctx); err != nil {
		return err
	}
	if err := d.Until(ctx, lost.Name()+" is unknown", w.machine(d, lost, "Unknown")); err != nil {
		return err
	}
	if err := d.Until(ctx, "its containers are waited for, and not made anew", w.is(d, "Ready", machines.ReasonMachineUnknown)); err != nil {
		return err
	}
	if err := w.draw(ctx, d); err != nil {
		return err
	}
	d.Step("starting %s again", lost.Name())
	if err := lost.Start(ctx); err != nil {
		return err
	}
	if err := d.Until(ctx, "all containers work again", w.is(d, "Ready", machines.ReasonDeployed)); err != nil {
		return err
	}
	return w.noneFailed(ctx, d)
}

// version changes the version of the service, after the operator has said what it is going to do.
func (w *world) version(ctx context.Context, d *demo.Demo, version string) error {
	if err := d.Plan(ctx, example.NewService(d.Namespace, version)); err != nil {
		return err
	}
	return image(ctx, d, w.service, version)
}

// migration is the job.
func (w *world) migration(d *demo.Demo) client.ObjectKey {
	return client.ObjectKeyFromObject(example.NewMigration(d.Namespace, ""))
}

// image changes the image of a service.
func image(ctx context.Context, d *demo.Demo, key client.ObjectKey, version string) error {
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"container":{"image":"shop:`+version+`"}}}`))
	return d.Client.Patch(ctx, &v1alpha1.MachineService{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}, patch)
}

// machine tells whether the condition Ready of a machine has a status.
func (w *world) machine(d *demo.Demo, e *dockertest.Engine, status metav1.ConditionStatus) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		m := &v1alpha1.Machine{}
		err := d.Client.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: e.Name()}, m)
		ready := meta.FindStatusCondition(m.Status.Conditions, machines.ConditionReady)
		return err == nil && ready != nil && ready.Status == status, err
	}
}

// is tells whether a condition of the service has a reason, for its newest spec.
func (w *world) is(d *demo.Demo, condition, reason string) func(context.Context) (bool, error) {
	return is(d, w.service, condition, reason)
}

// is reports whether a condition of a service has a reason, for its newest spec.
func is(d *demo.Demo, key client.ObjectKey, condition, reason string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		s := &v1alpha1.MachineService{}
		err := d.Client.Get(ctx, key, s)
		c := meta.FindStatusCondition(s.Status.Conditions, condition)
		return err == nil && c != nil && c.Reason == reason && c.ObservedGeneration == s.Generation, err
	}
}

// draw shows what is on the machines.
func (w *world) draw(ctx context.Context, d *demo.Demo) error {
	all, service := &v1alpha1.MachineList{}, &v1alpha1.MachineService{}
	if err := d.Client.List(ctx, all, client.InNamespace(d.Namespace)); err != nil {
		return err
	}
	if err := d.Client.Get(ctx, w.service, service); err != nil {
		return err
	}
	return d.Show("the machines:", func(out io.Writer, _ bool) error { return example.Draw(out, all.Items, service) })
}

// noneFailed says what became of the requests so far, after one more of them has ended: on machines that are lost, some wait for an
// answer until the balancer's patience ends. It is an error if one failed.
func (w *world) noneFailed(ctx context.Context, d *demo.Demo) error {
	before := w.load.Ended()
	if err := d.Wait(ctx, "requests are answered", func(context.Context) (bool, error) { return w.load.Ended() > before, nil }); err != nil {
		return err
	}
	if failed := w.load.Failed(); len(failed) > 0 {
		return fmt.Errorf("%s, the first because of: %w", w.load, failed[0])
	}
	d.Done(w.load.String())
	return nil
}
