package machines_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/command/commandtest"
	machinesv1alpha1 "github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/statemanagers"
	"github.com/operatorkit/operatorkit/operator/statemanagers/machines"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch"
)

// What the state manager declares is what it needs at the management cluster, and nothing else.
func TestMachinesOfServiceSetsHaveExactlyTheRightsThatTheyNeed(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: the rights of quickstart are looked at")
	}
	w := newWorld(t)
	beginMachines, endMachines := w.runMachines(t)
	cache := t.TempDir()
	life := commandtest.Scenario(t, command.Config{
		Name: "rights", CRDFiles: v1alpha1.CRDs, AddToScheme: []func(*runtime.Scheme) error{v1alpha1.AddToScheme, machinesv1alpha1.AddToScheme},
		New: func(_ context.Context, d *operator.Dependencies) ([]*framework.Framework, error) {
			fetcher, err := fetch.New(fetch.Config{Folder: cache})
			if err != nil {
				return nil, err
			}
			manager, err := machines.New(machines.Config{Client: d.Client, Namespaces: d.Namespaces, Logger: d.Logger, Fetcher: fetcher})
			if err != nil {
				return nil, err
			}
			return statemanagers.New(d, statemanagers.Config{
				SystemNamespace: d.Namespaces[0],
				Managers:        []statemanagers.Manager{{Provider: "machines", StateManager: manager, Watches: manager.Watches()}},
			})
		},
	})
	t.Cleanup(func() {
		_ = w.user.Delete(context.Background(), &v1alpha1.StateManagementProvider{ObjectMeta: metav1.ObjectMeta{Name: "machines"}})
	})
	values := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "values"}, StringData: map[string]string{"values.yaml": "replicas: 0"}}
	var upgraded atomic.Bool
	life.Deployed.Conflicts = func(r operatortest.Request) bool {
		return r.Verb == "patch" && (r.Resource == "statemanagementproviders" || r.Resource == "machineservices" && upgraded.Load())
	}
	life.Objects, life.Phases = []client.Object{&v1alpha1.ServiceSet{}}, phasesOfASet()
	// What fails at the one change and at the other is told by an event that counts.
	back := operatortest.Phase{
		Name: "go back", Do: patchSet(`[{"op": "replace", "path": "/spec/services/1/template", "value": "web-1"}]`), Until: runs("db db", "web web-1"),
	}
	life.Phases = slices.Insert(life.Phases, 2, back)
	first, upgrade := &life.Phases[0], &life.Phases[1]
	life.Cleanup = endMachines
	first.Do = operatortest.All(beginMachines, operatortest.Create(values), first.Do,
		patchSet(`[{"op": "add", "path": "/spec/services/0/valuesFrom", "value": [{"kind": "Secret", "name": "values"}]}]`))
	upgrade.Do = operatortest.All(func(context.Context, client.Client, string) error {
		upgraded.Store(true)
		return nil
	}, upgrade.Do)
	operatortest.Rights(t, life)
}
