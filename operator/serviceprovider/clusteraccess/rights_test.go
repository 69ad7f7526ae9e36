package clusteraccess_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/command/commandtest"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess/granter"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// platformConfig is the operator with scheduler and granter, for one provider: that of the namespace that it looks at.
func (s story) platformConfig() command.Config {
	return command.Config{
		Name: "rights", CRDFiles: v1alpha1.CRDs, AddToScheme: []func(*runtime.Scheme) error{v1alpha1.AddToScheme},
		New: func(_ context.Context, d *operator.Dependencies) ([]*framework.Framework, error) {
			return s.frameworks(d, d.Namespaces[0], granter.Config{Namespace: s.remoteNamespace(d.Namespaces[0])})
		},
	}
}

// What scheduler and granter declare is what they need on the platform, and nothing else.
func TestThePlatformsOperatorHasExactlyTheRightsThatItNeeds(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: the rights of quickstart are looked at")
	}
	w, life := newWorld(t), lifeOnThePlatform(t)
	s := story{w, func(namespace string) string { return namespace + "-remote" }}
	life.Neighbour, life.NeighbourAfter = nil, nil
	life.Deployed = commandtest.Scenario(t, s.platformConfig()).Deployed
	objects := life.Deployed.Objects
	life.Deployed.Objects = func(ctx context.Context, namespace string) ([]client.Object, error) {
		clusters := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.clustersOf(namespace)}}
		if err := w.user.Create(ctx, clusters); client.IgnoreAlreadyExists(err) != nil {
			return nil, err
		}
		return objects(ctx, namespace)
	}
	secret := func(ctx context.Context, namespace string) (*corev1.Secret, error) {
		ar, issued := s.accessRequest(namespace), &corev1.Secret{}
		err := w.user.Get(ctx, client.ObjectKeyFromObject(ar), ar)
		if err == nil && ar.Status.SecretRef == nil {
			err = errors.New("no credentials are issued")
		}
		if err == nil {
			err = w.user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ar.Status.SecretRef.Name}, issued)
		}
		return issued, err
	}
	ask, takeAway := life.Phases[0], life.Phases[2]
	spoil := operatortest.Phase{
		Name: "spoil what is issued",
		Do: func(ctx context.Context, user client.Client, namespace string) error {
			issued, err := secret(ctx, namespace)
			if err != nil {
				return err
			}
			return user.Patch(ctx, issued, client.RawPatch(types.MergePatchType, []byte(`{"data":{"kubeconfig":"eA=="}}`)))
		},
		Until: func(ctx context.Context, _ client.Client, namespace string) error {
			issued, err := secret(ctx, namespace)
			if err == nil && len(issued.Data[v1alpha1.KubeconfigKey]) < 10 {
				err = errors.New("it is spoilt")
			}
			return err
		},
	}
	// What fails at the one change and at the other is told by an event that counts.
	again := operatortest.Phase{Name: "ask again", Until: ask.Until, Do: func(ctx context.Context, user client.Client, namespace string) error {
		return errors.Join(user.Create(ctx, s.request(namespace)), user.Create(ctx, s.accessRequest(namespace)))
	}}
	life.Phases = append(slices.Insert(life.Phases, 2, spoil), again, takeAway)
	life.Phases[len(life.Phases)-1].Name = "take away again"
	operatortest.Rights(t, life)
}

// By no right of it the Secrets with which clusters are managed can be changed, and none are read one by one.
func TestThePlatformsOperatorOnlyWatchesTheSecretsBesideTheClusters(t *testing.T) {
	s := story{&world{}, func(namespace string) string { return namespace + "-remote" }}
	objects, err := commandtest.Manifests(t.Context(), s.platformConfig(), "--namespace", "provider")
	if err != nil {
		t.Fatal(err)
	}
	verbs := map[string][]string{}
	for _, o := range objects {
		role, ok := o.(*rbacv1.Role)
		if !ok {
			continue
		}
		for _, rule := range role.Rules {
			if slices.Contains(rule.Resources, "secrets") {
				verbs[role.Namespace] = append(verbs[role.Namespace], rule.Verbs...)
			}
		}
	}
	if got, want := verbs[s.clustersOf("provider")], []string{"list", "watch"}; !slices.Equal(got, want) {
		t.Errorf("beside the Clusters it may %v Secrets, want %v", got, want)
	}
	if got, want := verbs["provider"], []string{"get", "list", "watch", "create", "patch", "delete"}; !slices.Equal(got, want) {
		t.Errorf("in the namespace of the provider it may %v Secrets, want %v", got, want)
	}
}
