package serviceprovider_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func listed(list client.ObjectList) (int, error) {
	items, err := meta.ExtractList(list)
	return len(items), err
}

// crashed is a stack that crashes at its writes to the cluster of a role. The link to the others holds: what is on its way there
// arrives.
func crashed(role string, cfg *rest.Config, namespace string) stack {
	return stack{
		namespace: namespace, author: &author{createOrUpdate: deploy, del: undeploy},
		wrap: func(to string, next http.RoundTripper) http.RoundTripper {
			if to == role {
				return cfg.WrapTransport(next)
			}
			return next
		},
	}
}

// others are the roles but one.
func others(role string) []string {
	var all []string
	for _, r := range []string{platform, onboarding, mcp, workload} {
		if r != role {
			all = append(all, r)
		}
	}
	return all
}

// lifeOfAPostgres is the story of an object, from its order to its deletion, as its users tell it.
func lifeOfAPostgres(role string) []operatortest.Phase {
	postgres := func(namespace string) *Postgres {
		p := newPostgres("db", 3)
		p.Namespace = namespace
		return p
	}
	return []operatortest.Phase{
		{
			Name: "order",
			Do: func(ctx context.Context, _ client.Client, namespace string) error {
				for _, other := range others(role) {
					if err := planes[other].user.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
						return err
					}
				}
				return errors.Join(stack{namespace: namespace}.prepare(ctx), planes[onboarding].user.Create(ctx, postgres(namespace)))
			},
			Until: func(ctx context.Context, _ client.Client, namespace string) error {
				p := postgres(namespace)
				err := planes[onboarding].user.Get(ctx, client.ObjectKeyFromObject(p), p)
				if err == nil && told(p) != "Ready/True/Ready" {
					err = fmt.Errorf("the status says %s: %s", told(p), messageOf(p))
				}
				return err
			},
		},
		{
			Name: "delete",
			Do: func(ctx context.Context, _ client.Client, namespace string) error {
				return planes[onboarding].user.Delete(ctx, postgres(namespace))
			},
			Until: func(ctx context.Context, _ client.Client, namespace string) error {
				left, err := stack{namespace: namespace}.traces(ctx)
				if err == nil && len(left) > 0 {
					err = fmt.Errorf("something is left: %v", left)
				}
				return err
			},
		},
	}
}

// stateOf is what there is in all clusters of the objects of a namespace, under names that are the same in every run.
func stateOf(ctx context.Context, namespace string) ([]client.Object, error) {
	census := &unstructured.Unstructured{Object: map[string]any{}}
	census.SetAPIVersion("v1")
	census.SetKind("Census")
	census.SetName("census")
	objects := []client.Object{census}
	counts, err := stack{namespace: namespace}.traces(ctx)
	if err != nil {
		return nil, err
	}
	for what, n := range counts {
		census.Object[what] = int64(n)
	}
	orders := &unstructured.UnstructuredList{}
	orders.SetGroupVersionKind(servicesGroup.WithKind("PostgresList"))
	if err := planes[onboarding].user.List(ctx, orders, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	for i := range orders.Items {
		objects = append(objects, &orders.Items[i])
	}
	for _, role := range []string{mcp, workload} {
		for _, name := range []string{"db", "db" + besideSuffix} {
			m := &corev1.ConfigMap{}
			err := planes[role].user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, m)
			if client.IgnoreNotFound(err) != nil {
				return nil, err
			}
			if err == nil {
				m.Name = name + " in the " + role
				objects = append(objects, m)
			}
		}
	}
	return objects, nil
}

// ofTheGranter are the writes to the platform cluster that are the granter's and the scheduler's: what they answer, and the
// health of clusters. The tests of package clusteraccess crash them there.
func ofTheGranter(r operatortest.Request) bool {
	return r.Resource == "secrets" || r.Subresource == "status" || r.Resource == "clusters"
}

// TestAPostgresComesAndGoesWhateverWriteToAClusterTheOperatorCrashesAt crashes granter, scheduler and runtime, which are one
// process, at each of their writes to each of the four clusters, those of the granter to the platform excepted. The object
// becomes ready nevertheless, and goes without leaving anything behind: no access, no finalizer, nothing that was made for it.
func TestAPostgresComesAndGoesWhateverWriteToAClusterTheOperatorCrashesAt(t *testing.T) {
	allPlanes(t)
	for _, role := range []string{platform, onboarding, mcp, workload} {
		t.Run(role, func(t *testing.T) {
			life := lifeAt(role)
			if role == onboarding || !testing.Short() { // there the two meet on an object; elsewhere it is left to make test-all
				withAnother(role, &life)
			}
			operatortest.BreakAtEveryWrite(t, life)
		})
	}
}

// TestAPostgresComesAndGoesWhenATenantTakesItsFinalizersOff: it gets them back, or is cleaned up without them.
func TestAPostgresComesAndGoesWhenATenantTakesItsFinalizersOff(t *testing.T) {
	allPlanes(t)
	for _, role := range []string{platform, onboarding, mcp, workload} {
		if testing.Short() && role != onboarding {
			continue // left to make test-all
		}
		t.Run(role, func(t *testing.T) {
			life := lifeAt(role)
			life.Tenant = func(ctx context.Context, _ client.Client, namespace string) error {
				return operatortest.TakeFinalizers(newPostgres("db", 3))(ctx, planes[onboarding].user, namespace)
			}
			operatortest.TenantAtEveryWrite(t, life)
		})
	}
}

// withAnother has a second provider of the kind serve the same objects, with access and a ConfigMap of its own.
func withAnother(role string, life *operatortest.Scenario) {
	copied := func(do authorFunc) authorFunc {
		return func(ctx context.Context, obj *Postgres, config *ProviderConfig, clusters clusterCtx) (ctrl.Result, error) {
			copied := obj.DeepCopyObject().(*Postgres) // the endpoint and the condition are the first one's
			copied.Name += besideSuffix
			return do(ctx, copied, config, clusters)
		}
	}
	life.Neighbour = func(ctx context.Context, cfg *rest.Config, namespace string) error {
		s := crashed(role, cfg, namespace)
		s.operator, s.author = "second", &author{createOrUpdate: copied(deploy), del: copied(undeploy)}
		return s.run(ctx)
	}
	if role == platform { // where it is the granter's part to write the requests of both
		life.Start = func(ctx context.Context, cfg *rest.Config, namespace string) error {
			s := crashed(role, cfg, namespace)
			s.aside = true
			return s.run(ctx)
		}
	}
	held := func(n int) operatortest.Step {
		return func(ctx context.Context, _ client.Client, namespace string) error {
			p := newPostgres("db", 3)
			err := planes[onboarding].user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: p.Name}, p)
			if err == nil && len(p.Finalizers) < n {
				err = fmt.Errorf("the finalizers are %q", p.Finalizers)
			}
			return err
		}
	}
	life.NeighbourAfter = held(2)
	order := &life.Phases[0]
	order.Until = operatortest.All(order.Until, held(4), func(ctx context.Context, _ client.Client, namespace string) error {
		there, err := stack{namespace: namespace}.traces(ctx)
		if n := there["platform *v1.SecretList"]; err == nil && n != 4 {
			err = fmt.Errorf("both have %d credentials together: %v", n, there)
		}
		for _, in := range []string{mcp, workload} {
			if n := there[in+" *v1.ConfigMapList"]; err == nil && n != 2 {
				err = fmt.Errorf("the %s cluster has %d of two ConfigMaps: %v", in, n, there)
			}
		}
		return err
	})
}

// besideSuffix is what names end with of what the second provider makes.
const besideSuffix = "-beside"

// TestAPostgresComesAndGoesWhicheverClusterLags tells the same with one of the clusters lagging.
func TestAPostgresComesAndGoesWhicheverClusterLags(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: it goes through the whole story for each of four clusters")
	}
	allPlanes(t)
	for _, role := range []string{platform, onboarding, mcp, workload} {
		t.Run(role, func(t *testing.T) {
			life := lifeAt(role)
			life.Sample = true // a run takes as long as one with a crash, and there are twice as many
			operatortest.LagAtEveryWrite(t, life)
		})
	}
}

func TestNothingIsLeftOfAnObjectThatWentWhileNothingRan(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: it runs all that serves an object, twice")
	}
	allPlanes(t)
	ctx := context.WithoutCancel(t.Context())
	namespace := "orphan-" + utilrand.String(6)
	t.Cleanup(func() {
		_ = planes[platform].user.Delete(ctx, stack{namespace: namespace}.config())
		_ = planes[platform].user.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: stack{namespace: namespace}.layout().Clusters}})
		for _, role := range others("") {
			_ = planes[role].user.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		}
	})
	order := lifeOfAPostgres("")[0]
	if err := order.Do(ctx, nil, namespace); err != nil {
		t.Fatal(err)
	}
	run := func(until string, holds func() error) {
		t.Helper()
		ctx, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- crashed("", nil, namespace).run(ctx) }()
		operatortest.Eventually(t, until, holds)
		stop()
		<-ended //nolint:errcheck // a process that was stopped may end with anything
	}
	run("it is ready", func() error { return order.Until(ctx, nil, namespace) })
	db := newPostgres("db", 3)
	db.Namespace = namespace
	taken := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	if err := errors.Join(planes[onboarding].user.Patch(ctx, db, taken), planes[onboarding].user.Delete(ctx, db)); err != nil {
		t.Fatal(err)
	}
	run("nothing is granted any more", func() error {
		left, err := stack{namespace: namespace}.traces(ctx)
		for what := range left {
			err = errors.Join(err, fmt.Errorf("%s is left", what))
		}
		return err
	})
}

func TestGranterSchedulerAndRuntimeAreQuietWhenTheyHaveNothingToDo(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: it goes through the whole story for each of four clusters")
	}
	allPlanes(t)
	for _, role := range []string{platform, onboarding, mcp, workload} {
		t.Run(role, func(t *testing.T) { operatortest.Quiet(t, lifeAt(role)) })
	}
}

// lifeAt is the story of a Postgres with mishaps at the cluster of a role.
func lifeAt(role string) operatortest.Scenario {
	uncounted := []operatortest.Match{operatortest.Leases, operatortest.Events}
	if role == platform {
		uncounted = append(uncounted, ofTheGranter)
	}
	return operatortest.Scenario{
		Name: "a Postgres, " + role + " cluster", Scheme: scheme, Config: adminOf(role), Parallel: 6, Timeout: 5 * time.Minute,
		Uncounted: uncounted,
		Start: func(ctx context.Context, cfg *rest.Config, namespace string) error {
			return crashed(role, cfg, namespace).run(ctx)
		},
		Phases: lifeOfAPostgres(role),
		List: func(ctx context.Context, _ client.Client, namespace string) ([]client.Object, error) {
			return stateOf(ctx, namespace)
		},
		Cleanup: func(ctx context.Context, _ client.Client, namespace string) error {
			clusters := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: stack{namespace: namespace}.layout().Clusters}}
			errs := []error{
				client.IgnoreNotFound(planes[platform].user.Delete(ctx, stack{namespace: namespace}.config())),
				client.IgnoreNotFound(planes[platform].user.Delete(ctx, clusters)),
			}
			for _, other := range others(role) {
				err := planes[other].user.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
				errs = append(errs, client.IgnoreNotFound(err))
			}
			return errors.Join(errs...)
		},
	}
}
