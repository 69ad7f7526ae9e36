package deploymentresource_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/giantswarm/micrologger"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/logging"
	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deploymentresource"
)

// view is machines as they are seen. Nothing can be changed through it: that would be a nil pointer.
type view struct {
	deployment.Client
	mu       sync.Mutex
	machines []api.Machine
	has      map[string]api.Inventory
}

func (v *view) ListMachines(context.Context) ([]api.Machine, error) { return v.machines, nil }

func (v *view) InspectMachine(_ context.Context, id string) (api.Inventory, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.has[id], nil
}

func (v *view) InspectService(context.Context, string) (api.Service, error) {
	return api.Service{}, api.ErrNotFound
}

// put puts a container onto a machine.
func (v *view) put(machine string, c api.Container) {
	v.mu.Lock()
	defer v.mu.Unlock()
	inventory := v.has[machine]
	inventory.Containers = append(inventory.Containers, c)
	v.has[machine] = inventory
}

// seen is two machines with the images app:v1 and app:v2.
func seen() *view {
	images := []api.Image{{ID: "1", Tags: []string{"app:v1"}}, {ID: "2", Tags: []string{"app:v2"}}}
	return &view{
		machines: []api.Machine{{ID: "id-1", Name: "m1"}, {ID: "id-2", Name: "m2"}},
		has:      map[string]api.Inventory{"id-1": {Images: images}, "id-2": {Images: images}},
	}
}

func specOf(image string, replicas int32) api.ServiceSpec {
	return api.ServiceSpec{Name: "web", Replicas: &replicas, Container: api.ContainerSpec{
		Image: image, Env: map[string]string{"LOG": "info"}, SecretEnv: map[string]api.Hidden{"TOKEN": "s3cr3t-" + api.Hidden(image)},
	}}
}

// running is a container of the service that works.
func running(name, image string) api.Container {
	spec := specOf(image, 1)
	spec.SetDefaults()
	return api.Container{
		ID: "id-" + name, Name: name, ServiceID: "s", ServiceName: "web", Spec: spec, State: api.ContainerRunning,
		Owner: api.OwnershipOf(context.Background()).Owner("web"),
	}
}

func loggerOf(t *testing.T, w io.Writer) micrologger.Logger {
	t.Helper()
	logger, err := logging.New(logging.Config{Writer: w, Format: logging.FormatText})
	if err != nil {
		t.Fatal(err)
	}
	return logger
}

// object is a primary; deleted is one that is being deleted.
type object struct{ deleted bool }

// newResource returns a resource for what compute returns.
func newResource(t *testing.T, compute deploymentresource.Compute[*object]) *framework.TypedCRUDResource[*object, deploymentresource.State] {
	t.Helper()
	r, err := deploymentresource.New(deploymentresource.Config[*object]{Logger: loggerOf(t, t.Output()), Compute: compute})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// of returns the Compute for a service.
func of(service deploymentresource.Service) deploymentresource.Compute[*object] {
	return func(ctx context.Context, o *object) (*deploymentresource.Work, error) {
		if o.deleted {
			return deploymentresource.Removal(ctx, service)
		}
		return deploymentresource.Plan(ctx, service)
	}
}

// patchOf returns the patch of a resource for an object.
func patchOf(t *testing.T, compute deploymentresource.Compute[*object], o *object) (
	*framework.TypedPatch[deploymentresource.State], deploymentresource.State, error,
) {
	t.Helper()
	r := newResource(t, compute)
	desired, err := r.GetDesiredState(t.Context(), o)
	if err != nil {
		return nil, desired, err
	}
	newPatch := r.NewUpdatePatch
	if o.deleted {
		newPatch = r.NewDeletePatch
	}
	patch, err := newPatch(t.Context(), o, deploymentresource.State{}, desired)
	return patch, desired, err
}

// textOf shows what a patch changes, part by part, and the notes.
func textOf(t *testing.T, compute deploymentresource.Compute[*object], o *object) string {
	t.Helper()
	patch, desired, err := patchOf(t, compute, o)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	show := func(part string, action plan.Action, get func() (deploymentresource.State, bool)) {
		state, set := get()
		if !set {
			return
		}
		_, _ = fmt.Fprintln(&b, part)
		if err := plan.WriteChangesText(&b, plan.Describe(action, state, nil), plan.TextOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	show("create", plan.Create, patch.CreateChange)
	show("update", plan.Update, patch.UpdateChange)
	show("delete", plan.Delete, patch.DeleteChange)
	for _, note := range plan.Notes(desired) {
		_, _ = fmt.Fprintln(&b, "·", note)
	}
	return b.String()
}
