package servicesetresource_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/giantswarm/micrologger"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/servicesetresource"
)

// clusters is a small operator: a framework for the clusters of a namespace, which reads from the stores of its watches.
type clusters struct {
	*framework.Framework
	sources []*informer.Kubernetes
}

func newClusters(cfg *rest.Config, scheme *runtime.Scheme, namespace string, log io.Writer) (*clusters, error) {
	logger, err := micrologger.New(micrologger.Config{IOWriter: log})
	if err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	var sources []*informer.Kubernetes
	for _, object := range []client.Object{
		&v1alpha1.ClusterDeployment{}, &v1alpha1.ServiceSet{}, &v1alpha1.ServiceTemplate{}, &v1alpha1.ServiceTemplateChain{},
		&v1alpha1.MultiClusterService{}, &v1alpha1.StateManagementProvider{},
	} {
		config := informer.KubernetesConfig{Client: c, Object: object, Logger: logger}
		if namespaced, err := c.IsObjectNamespaced(object); err != nil {
			return nil, err
		} else if namespaced {
			config.Namespaces = []string{namespace}
		}
		source, err := informer.NewKubernetes(config)
		if err != nil {
			return nil, err
		}
		sources = append(sources, source)
	}
	reader := informer.NewReader(scheme, sources...)
	compute := func(ctx context.Context, cd cluster) ([]serviceset.OwnerOperation, error) {
		return serviceset.ComputeClusterOperations(ctx, reader, "operatorkit-system", cd)
	}
	sets, err := servicesetresource.New(servicesetresource.Config[cluster]{Client: c, Logger: logger, Compute: compute})
	if err != nil {
		return nil, err
	}
	check, err := servicesetresource.NewCheck(servicesetresource.CheckConfig[cluster]{Compute: compute})
	if err != nil {
		return nil, err
	}
	config := framework.Config{
		Name: "clusters", Source: sources[0], Logger: logger, Resources: []framework.Resource{sets, check}, ShutdownTimeout: time.Second,
	}
	every := func(context.Context, any) []informer.Key {
		var keys []informer.Key
		for _, cd := range sources[0].List() {
			keys = append(keys, client.ObjectKeyFromObject(cd.(client.Object)))
		}
		return keys
	}
	for _, source := range sources[1:] {
		config.Watches = append(config.Watches, framework.Watch{Source: source, Map: every})
	}
	f, err := framework.New(config)
	if err != nil {
		return nil, err
	}
	return &clusters{f, sources}, nil
}

// clusters makes the operator of the kit's namespace.
func (k *kit) clusters() *clusters {
	k.t.Helper()
	cfg := k.faults.Wrap(k.server.RESTConfig())
	c, err := newClusters(cfg, k.scheme, k.namespace, k.log)
	if err != nil {
		k.t.Fatal(err)
	}
	return c
}

// during runs something until the test ends.
func during(t *testing.T, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestDeletionOfAClusterWaitsForItsSets(t *testing.T) {
	k := newKit(t)
	k.templates(map[string][]string{"a": {"1.0.0"}, "b": {"1.0.0"}})
	cd := k.cluster("prod", wanted("a", "1.0.0"))
	k.services("base", wanted("b", "1.0.0"))
	during(t, k.clusters().Run)
	operatortest.Eventually(t, "both sets are there", func() bool { return len(k.sets()) == 2 })
	for _, set := range k.sets() { // as a state manager that has to clean up does
		k.patch(&set, `{"metadata":{"finalizers":["example.com/manager"]}}`)
	}
	if err := k.user.Delete(t.Context(), cd); err != nil {
		t.Fatal(err)
	}
	for left := 2; left > 0; left-- {
		operatortest.Eventually(t, "all sets are being deleted", func() error {
			for _, set := range k.sets() {
				if set.DeletionTimestamp == nil {
					return fmt.Errorf("ServiceSet %s is not being deleted", set.Name)
				}
			}
			return nil
		})
		if sets := k.sets(); len(sets) != left {
			t.Fatalf("%d sets are there, want %d", len(sets), left)
		}
		if err := k.user.Get(t.Context(), client.ObjectKeyFromObject(cd), cd); err != nil || len(cd.Finalizers) == 0 {
			t.Fatalf("the cluster went before its sets: %v, finalizers %v", err, cd.Finalizers)
		}
		set := k.sets()[0]
		k.patch(&set, `{"metadata":{"finalizers":null}}`)
		operatortest.Eventually(t, "a set is gone", func() bool { return len(k.sets()) < left })
	}
	operatortest.Eventually(t, "the cluster is gone", func() bool {
		return client.IgnoreNotFound(k.user.Get(t.Context(), client.ObjectKeyFromObject(cd), cd)) == nil && len(k.clusterNames()) == 0
	})
}

func (k *kit) clusterNames() []string {
	k.t.Helper()
	list := &v1alpha1.ClusterDeploymentList{}
	if err := k.user.List(k.t.Context(), list, client.InNamespace(k.namespace)); err != nil {
		k.t.Fatal(err)
	}
	names := []string{}
	for _, cd := range list.Items {
		names = append(names, cd.Name)
	}
	return names
}

// What an owner has to mend is logged once for each change, and goes on when it is mended.
func TestAMendedOwnerGoesOnByItself(t *testing.T) {
	k := newKit(t)
	k.templates(map[string][]string{"a": {"1.0.0"}, "b": {"1.0.0"}})
	cd := k.cluster("prod", wanted("a", "1.0.0", "b"), wanted("b", "1.0.0", "a"))
	during(t, k.clusters().Run)
	operatortest.Eventually(t, "the cycle is in the log", func() bool {
		log := k.log.String()
		return strings.Contains(log, "services depend on each other: default/a → default/b → default/a") && strings.Contains(log, `"retry":"at the next change"`)
	})
	k.want(cd, wanted("a", "1.0.0", "b"), wanted("b", "1.0.0"))
	operatortest.Eventually(t, "the service that depends on nothing is in the set", func() bool {
		set, there := k.set("prod")
		return there && slices.Equal(names(set), []string{"b 1.0.0"})
	})
}

func TestASavedPlanIsAppliedAsItIsOrNotAtAll(t *testing.T) {
	k := newKit(t)
	k.templates(map[string][]string{"a": {"1.0.0", "2.0.0"}, "b": {"1.0.0"}})
	cd := k.cluster("prod", wanted("a", "1.0.0"))
	c := k.clusters()
	for _, source := range c.sources {
		during(t, source.Run)
		if err := source.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	key := client.ObjectKeyFromObject(cd)
	saved := func() *plan.Plan {
		t.Helper()
		p, err := c.Plan(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	first := saved()
	if err := c.ApplyPlan(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if set, _ := k.set("prod"); !slices.Equal(names(set), []string{"a 1.0.0"}) {
		t.Errorf("services = %v", names(set))
	}
	operatortest.Eventually(t, "the store has what was written", func() bool { return !saved().Counts().Any() })
	if err := c.ApplyPlan(t.Context(), first); !errors.Is(err, framework.ErrPlanChanged) {
		t.Errorf("error = %v, want ErrPlanChanged: the plan was applied already", err)
	}

	k.manage()
	k.want(cd, wanted("a", "2.0.0"))
	operatortest.Eventually(t, "the upgrade is planned", func() bool { return saved().Counts().Update == 1 })
	upgrade := saved()
	k.want(cd, wanted("a", "2.0.0"), wanted("b", "1.0.0"))
	operatortest.Eventually(t, "more is planned", func() bool { return saved().Counts().Create == 1 })
	before := len(k.writes())
	if err := c.ApplyPlan(t.Context(), upgrade); !errors.Is(err, framework.ErrPlanChanged) || !strings.Contains(err.Error(), "create service default/b") {
		t.Errorf("error = %v, want ErrPlanChanged with the difference", err)
	}
	if more := k.writes()[before:]; len(more) > 0 {
		t.Errorf("a plan that is not the same any more has written %v", more)
	}
	if err := c.ApplyPlan(t.Context(), saved()); err != nil {
		t.Error(err)
	}
}
