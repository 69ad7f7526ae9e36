package servicesetresource_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// runs is a condition: these services are in the sets of the cluster, as "a 1.0.0", and they are deployed. A state
// manager that is done at once works meanwhile.
func runs(want ...string) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		list := &v1alpha1.ServiceSetList{}
		if err := user.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
		got, settled := []string{}, true
		for i := range list.Items {
			set := &list.Items[i]
			got = append(got, names(set)...)
			settled = settled && len(set.Spec.Removing) == 0 && len(set.Status.Services) == len(set.Spec.Services)
			if err := manage(ctx, user, set); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) || !settled {
			return fmt.Errorf("the sets have %v, settled: %v, want %v", got, settled, want)
		}
		return nil
	}
}

// only is a condition: the cluster has no set but its own.
func only(ctx context.Context, user client.Client, namespace string) error {
	list := &v1alpha1.ServiceSetList{}
	if err := user.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return err
	}
	if len(list.Items) != 1 {
		return fmt.Errorf("there are %d sets, want 1", len(list.Items))
	}
	return nil
}

// wants changes what the cluster wants.
func wants(services ...service) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		before := &v1alpha1.ClusterDeployment{}
		if err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "prod"}, before); err != nil {
			return err
		}
		after := before.DeepCopy()
		after.Spec.ServiceSpec.Services = services
		return user.Patch(ctx, after, client.MergeFrom(before))
	}
}

// begin creates the templates, the cluster, and services for it by another owner.
func begin(ctx context.Context, user client.Client, namespace string) error {
	objects := []client.Object{
		template(namespace, "a", "1.0.0"), template(namespace, "a", "2.0.0"), template(namespace, "a", "3.0.0"),
		template(namespace, "b", "1.0.0"), template(namespace, "c", "1.0.0"),
		&v1alpha1.ServiceTemplateChain{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"},
			Spec: v1alpha1.ServiceTemplateChainSpec{SupportedTemplates: []v1alpha1.SupportedTemplate{
				{Name: "a-1-0-0", AvailableUpgrades: []v1alpha1.AvailableUpgrade{{Name: "a-2-0-0"}}},
				{Name: "a-2-0-0", AvailableUpgrades: []v1alpha1.AvailableUpgrade{{Name: "a-3-0-0"}}},
				{Name: "a-3-0-0"},
			}},
		},
		servicesOf(namespace, "base", wanted("c", "1.0.0")),
		clusterOf(namespace, "prod", stepwise("1.0.0"), wanted("b", "1.0.0", "a")),
	}
	var errs []error
	for _, o := range objects {
		errs = append(errs, user.Create(ctx, o))
	}
	return errors.Join(errs...)
}

// stepwise is the service a, which goes along a chain.
func stepwise(version string) service {
	s := wanted("a", version)
	s.TemplateChain = "a"
	return s
}

func withdraw(ctx context.Context, user client.Client, namespace string) error {
	return client.IgnoreNotFound(user.Delete(ctx, servicesOf(namespace, "base")))
}

// gone is a condition: neither the cluster nor a set of it is there.
func gone(ctx context.Context, user client.Client, namespace string) error {
	if err := runs()(ctx, user, namespace); err != nil {
		return err
	}
	err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "prod"}, &v1alpha1.ClusterDeployment{})
	if err == nil {
		err = errors.New("the cluster is still there")
	}
	return ignore(err, apierrors.IsNotFound)
}

func ignore(err error, what func(error) bool) error {
	if what(err) {
		return nil
	}
	return err
}

// sets returns the sets of the namespace, without what names a MultiClusterService, which every run calls by another name, and without the
// generations of entries: an operator that reads a template late writes a set twice.
func sets(ctx context.Context, user client.Client, namespace string) ([]client.Object, error) {
	list := &v1alpha1.ServiceSetList{}
	if err := user.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	var objects []client.Object
	for i := range list.Items {
		set := &list.Items[i]
		set.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.ServiceSetKind))
		if name, _, ofServices := strings.Cut(set.Name, "."); ofServices {
			set.Name, set.OwnerReferences, set.ManagedFields, set.Spec.MultiClusterService = name+".hash", nil, nil, ""
		}
		for i := range set.Spec.Services {
			set.Spec.Services[i].Generation = 0
		}
		objects = append(objects, set)
	}
	return objects, nil
}

func TestSetsComeUpAndGoAwayOverACrashAtEveryWrite(t *testing.T) {
	server := serve(t)
	scheme := newScheme(t)
	user := operatortest.NewClient(t, server.RESTConfig(), scheme)
	if err := user.Create(t.Context(), provider("native")); ignore(err, apierrors.IsAlreadyExists) != nil {
		t.Fatal(err)
	}
	operatortest.BreakAtEveryWrite(t, operatortest.Scenario{
		Name: "service sets", Scheme: scheme, Config: server.RESTConfig(), Parallel: 4,
		Start: func(ctx context.Context, cfg *rest.Config, namespace string) error {
			c, err := newClusters(cfg, scheme, namespace, io.Discard)
			if err != nil {
				return err
			}
			return c.Run(ctx)
		},
		Phases: []operatortest.Phase{
			{Name: "come up in order", Do: begin, Until: runs("a 1.0.0", "b 1.0.0", "c 1.0.0")},
			{Name: "go up step by step", Do: wants(stepwise("3.0.0"), wanted("b", "1.0.0", "a")), Until: runs("a 3.0.0", "b 1.0.0", "c 1.0.0")},
			{Name: "remove a service", Do: wants(stepwise("3.0.0")), Until: runs("a 3.0.0", "c 1.0.0")},
			{Name: "withdraw an owner", Do: withdraw, Until: operatortest.All(runs("a 3.0.0"), only)},
			{Name: "delete the cluster", Do: operatortest.Delete(clusterOf("", "prod")), Until: gone},
		},
		Objects: []client.Object{&v1alpha1.ClusterDeployment{}},
		List:    sets,
		Cleanup: withdraw,
	})
}
