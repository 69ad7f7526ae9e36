package platform_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/examples/platform"
	"github.com/operatorkit/operatorkit/operator/command/commandtest"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/servicesets"
	"github.com/operatorkit/operatorkit/operator/statemanagers"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// What service sets and state managers declare is what they need at the management cluster, and nothing else. At the clusters they have the
// rights of the kubeconfigs.
func TestThePlatformHasExactlyTheRightsThatItNeeds(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: the rights of quickstart are looked at")
	}
	const provider = "rights"
	life := lifeOfAService(t, provider)
	life.Neighbour, life.NeighbourAfter = nil, nil
	life.Deployed = commandtest.Scenario(t, platform.Config(ours, &statemanagers.NativeConfig{Provider: provider})).Deployed
	life.Deployed.Conflicts = func(r operatortest.Request) bool {
		return r.Resource == "statemanagementproviders" && r.Verb == "patch"
	}
	user := operatortest.NewClient(t, life.Config, life.Scheme)
	// Roles stand in the namespace for the services of the management cluster, too.
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: servicesets.DefaultSystemNamespace}}
	if err := user.Create(t.Context(), system); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = user.Delete(context.Background(), &v1alpha1.StateManagementProvider{ObjectMeta: metav1.ObjectMeta{Name: provider}})
	})

	// Lists and chains have statuses of their own.
	list := func(namespace string) *v1alpha1.MultiClusterService {
		nowhere := &metav1.LabelSelector{MatchLabels: map[string]string{"rights": namespace}}
		return &v1alpha1.MultiClusterService{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: ourLabels}, Spec: v1alpha1.MultiClusterServiceSpec{ClusterSelector: nowhere}}
	}
	chain := &v1alpha1.ServiceTemplateChain{
		ObjectMeta: metav1.ObjectMeta{Name: "one"},
		Spec:       v1alpha1.ServiceTemplateChainSpec{SupportedTemplates: []v1alpha1.SupportedTemplate{{Name: "dashboards"}}},
	}
	place, settled := life.Phases[0].Do, life.Phases[0].Until
	life.Phases[0].Do = func(ctx context.Context, user client.Client, namespace string) error {
		return errors.Join(place(ctx, user, namespace), user.Create(ctx, list(namespace)), operatortest.Create(chain)(ctx, user, namespace))
	}
	life.Phases[0].Until = operatortest.All(settled, func(ctx context.Context, user client.Client, namespace string) error {
		told, valid := list(namespace), &v1alpha1.ServiceTemplateChain{}
		err := errors.Join(user.Get(ctx, client.ObjectKeyFromObject(told), told), user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: chain.Name}, valid))
		if err == nil && (len(told.Status.Conditions) == 0 || len(valid.Status.Conditions) == 0) {
			err = errors.New("the list and the chain have no conditions")
		}
		return err
	})
	// A ServiceSet is written anew when its services are to be carried out otherwise.
	otherwise := operatortest.Phase{
		Name: "another mode", Until: life.Phases[1].Until,
		Do: operatortest.Patch(&v1alpha1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Name: "eu"}}, `{"spec":{"serviceSpec":{"syncMode":"ContinuousWithDriftDetection"}}}`),
	}
	life.Phases = slices.Insert(life.Phases, 2, otherwise)
	last := &life.Phases[len(life.Phases)-1]
	take, gone := last.Do, last.Until
	last.Do = func(ctx context.Context, user client.Client, namespace string) error {
		return errors.Join(take(ctx, user, namespace), user.Delete(ctx, list(namespace)))
	}
	last.Until = operatortest.All(gone, func(ctx context.Context, user client.Client, namespace string) error {
		err := user.Get(ctx, client.ObjectKey{Name: namespace}, &v1alpha1.MultiClusterService{})
		if err == nil {
			return errors.New("the list is there")
		}
		return client.IgnoreNotFound(err)
	})
	operatortest.Rights(t, life)
}
