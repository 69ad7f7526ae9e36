package machines_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	example "github.com/operatorkit/operatorkit/examples/machines"
	"github.com/operatorkit/operatorkit/operator/command/commandtest"
	"github.com/operatorkit/operatorkit/operator/machines"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/dockertest"
)

// TestTheShopIsAsItShouldBeWhateverCrashes has two operators of different names for the same machine and the same service.
func TestTheShopIsAsItShouldBeWhateverCrashes(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: the operator that it consists of has a test of this kind, which is run in samples")
	}
	dockertest.Require(t)
	operatortest.BreakAtEveryWrite(t, lifeOfTheShop(t))
}

// lifeOfTheShop is the life of the service in two versions, on one machine that all runs share, one after the other.
func lifeOfTheShop(t *testing.T) operatortest.Scenario {
	t.Helper()
	config := machines.Config{BackOffFactory: func() backoff.BackOff { return backoff.NewConstantBackOff(100 * time.Millisecond) }}
	life := commandtest.Scenario(t, example.Config(config))
	engine := dockertest.Start(t, 1)[0]
	if err := engine.Load(t.Context(), example.Images()...); err != nil {
		t.Fatal(err)
	}
	start := func(name string) func(ctx context.Context, cfg *rest.Config, namespace string) error {
		operator := example.Config(config)
		operator.Name = name
		return commandtest.Start(operator)
	}
	shop, machine := example.NewService("", "1"), example.NewMachine("", engine)
	replicas := int32(1)
	shop.Spec.Replicas, shop.Spec.Ports = &replicas, nil // the ports that an engine picks differ
	shop.Spec.Container.HealthCheck = &api.HealthCheck{Disable: true}
	shop.Spec.Update.Monitor = &metav1.Duration{Duration: 100 * time.Millisecond}
	claimed := func(ctx context.Context, user client.Client, namespace string) error {
		for _, o := range []client.Object{shop.DeepCopy(), machine.DeepCopy()} {
			o.SetNamespace(namespace)
			if err := user.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
				return err
			}
			if o.GetAnnotations()["operatorkit.io/claimed-by"] == "" {
				return fmt.Errorf("nobody has %T", o)
			}
		}
		return nil
	}
	works := func(ctx context.Context, user client.Client, namespace string) error {
		found := &v1alpha1.MachineService{}
		if err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: shop.Name}, found); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(found.Status.Conditions, machines.ConditionReady)
		if ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != found.Generation {
			return fmt.Errorf("generation %d has the status %+v", found.Generation, found.Status)
		}
		return nil
	}
	life.Start, life.Neighbour, life.NeighbourAfter = start(example.Name), start("second"), claimed
	life.Sample = true // the operator has a sweep over all points
	life.Timeout, life.Objects = 2*time.Minute, []client.Object{&v1alpha1.MachineService{}, &v1alpha1.Machine{}}
	life.List = func(ctx context.Context, _ client.Client, namespace string) ([]client.Object, error) {
		return containers(ctx, engine, namespace)
	}
	life.Normalize = func(u *unstructured.Unstructured) { unstructured.RemoveNestedField(u.Object, "status", "machines") } // names end at random
	life.Phases = []operatortest.Phase{
		{Name: "deploy", Do: operatortest.Create(machine, shop), Until: works},
		{Name: "update", Do: operatortest.Patch(shop, `{"spec": {"container": {"image": "shop:2"}, "replicas": 2}}`), Until: works},
		{Name: "remove", Do: operatortest.Delete(shop, machine), Until: operatortest.Gone(shop, machine)},
	}
	return life
}

// containers returns what is on a machine of a run, as a ConfigMap.
func containers(ctx context.Context, engine *dockertest.Engine, namespace string) ([]client.Object, error) {
	lines, err := engine.Containers(ctx, namespace)
	if err != nil {
		return nil, err
	}
	return []client.Object{&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "containers"}, Data: map[string]string{"are": strings.Join(lines, ", ")},
	}}, nil
}
