package sveltos_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/command/commandtest"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/statemanagers"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/sveltos"
	"github.com/operatorkit/operatorkit/resource/statemanager/sveltos/v1beta1"
)

// What the state manager declares is what it needs at the management cluster, and nothing else: for a set of a cluster, and for one of the
// management cluster, whose profile has no namespace.
func TestSveltosHasExactlyTheRightsThatItNeeds(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: the rights of quickstart are looked at")
	}
	w := onOwn(t)
	config := command.Config{
		Name: "rights", CRDFiles: v1alpha1.CRDs, AddToScheme: []func(*runtime.Scheme) error{v1alpha1.AddToScheme, v1beta1.AddToScheme},
		New: func(_ context.Context, d *operator.Dependencies) ([]*framework.Framework, error) {
			manager, err := sveltos.New(sveltos.Config{
				Client: d.Client, Namespaces: d.Namespaces, Logger: d.Logger,
				Management: client.ObjectKey{Namespace: d.Namespaces[0], Name: sveltos.DefaultManagementName},
			})
			if err != nil {
				return nil, err
			}
			return statemanagers.New(d, statemanagers.Config{
				SystemNamespace: d.Namespaces[0],
				Managers:        []statemanagers.Manager{{Provider: "sveltos", StateManager: manager, Watches: manager.Watches()}},
			})
		},
	}
	life := commandtest.Scenario(t, config)
	t.Cleanup(func() {
		_ = w.client.Delete(context.Background(), &v1alpha1.StateManagementProvider{ObjectMeta: metav1.ObjectMeta{Name: "sveltos"}})
	})
	network := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "network"}, Data: map[string]string{"region": "eu"}}
	management := &v1alpha1.ServiceSet{
		ObjectMeta: metav1.ObjectMeta{Name: "management", Labels: map[string]string{statemanagers.ProviderLabel: "sveltos"}},
		Spec: v1alpha1.ServiceSetSpec{
			MultiClusterService: "all", Provider: v1alpha1.StateManagementProviderConfig{Name: "sveltos"},
			Services: []v1alpha1.ServiceWithValues{{
				Namespace: "apps", Name: "base", Template: "base-1.0.0", Values: "region: {{ .Objects.net.data.region }}\n",
				ValuesTemplate: &v1alpha1.ValuesTemplate{Objects: []v1alpha1.ValuesObject{{As: "net", Kind: "ConfigMap", Name: network.Name}}},
			}},
		},
	}
	life.Deployed.Conflicts = func(r operatortest.Request) bool {
		return r.Resource == "statemanagementproviders" && r.Verb == "patch"
	}
	life.Objects, life.Phases = []client.Object{&v1alpha1.ServiceSet{}}, phasesOfASet()
	first, last := &life.Phases[0], &life.Phases[len(life.Phases)-1]
	first.Do = operatortest.All(first.Do, operatortest.Create(network, management))
	first.Until = operatortest.All(first.Until, operatortest.Ready(management))
	last.Do = operatortest.All(last.Do, operatortest.Delete(management))
	last.Until = operatortest.All(last.Until, operatortest.Gone(management))
	operatortest.Rights(t, life)
}
