package clusteraccess_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess/granter"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess/namespaces"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess/scheduler"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

// story is the life of an access, from the request for a cluster to the end, as a user on the platform tells it.
type story struct {
	*world
	// remoteNamespace is where something is granted in the cluster, for the run in a namespace.
	remoteNamespace func(namespace string) string
}

// clustersOf is the namespace of the Clusters for the run in a namespace, which is the provider's.
func (s story) clustersOf(namespace string) string { return namespace + "-clusters" }

func (s story) request(namespace string) *v1alpha1.ClusterRequest {
	r := newRequest("r", "workload", nil)
	r.Namespace = namespace
	return r
}

func (s story) accessRequest(namespace string) *v1alpha1.AccessRequest {
	ar := newAccess("a", "", inNamespace(s.remoteNamespace(namespace), "get"))
	ar.Spec.ClusterRef, ar.Spec.RequestRef = nil, &v1alpha1.LocalObjectReference{Name: "r"}
	ar.Spec.RoleRefs = []v1alpha1.RoleReference{{Kind: "ClusterRole", Name: "view", Namespace: s.remoteNamespace(namespace)}}
	ar.Namespace = namespace
	return ar
}

// phases are the story. on picks the client of the platform.
func (s story) phases(t *testing.T, on func(client.Client) client.Client) []operatortest.Phase {
	granted := func(ctx context.Context, user client.Client, namespace string) error {
		ar := s.accessRequest(namespace)
		if err := on(user).Get(ctx, client.ObjectKeyFromObject(ar), ar); err != nil {
			return err
		}
		if ar.Status.Phase != v1alpha1.PhaseGranted || ar.Status.ObservedGeneration != ar.Generation || message(ar) == "" {
			return fmt.Errorf("it is %+v", ar.Status)
		}
		return nil
	}
	return []operatortest.Phase{
		{
			Name: "ask",
			Do: func(ctx context.Context, user client.Client, namespace string) error {
				clusters := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.clustersOf(namespace)}}
				cluster, secret := newCluster(t, "c", s.remote.RESTConfig(), "workload")
				cluster.Namespace, secret.Namespace = clusters.Name, clusters.Name
				errs := []error{client.IgnoreAlreadyExists(on(user).Create(ctx, clusters))}
				for _, o := range []client.Object{secret, cluster, s.request(namespace), s.accessRequest(namespace)} {
					errs = append(errs, on(user).Create(ctx, o))
				}
				return errors.Join(errs...)
			},
			Until: granted,
		},
		{
			Name: "ask for less",
			Do: func(ctx context.Context, user client.Client, namespace string) error {
				return on(user).Patch(ctx, s.accessRequest(namespace), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"roleRefs":null}}`)))
			},
			Until: granted,
		},
		{
			Name: "take away",
			Do: func(ctx context.Context, user client.Client, namespace string) error {
				return errors.Join(on(user).Delete(ctx, s.accessRequest(namespace)), on(user).Delete(ctx, s.request(namespace)))
			},
			Until: func(ctx context.Context, user client.Client, namespace string) error {
				for _, o := range []client.Object{s.accessRequest(namespace), s.request(namespace)} {
					if err := on(user).Get(ctx, client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
						return errors.Join(err, fmt.Errorf("%T is still there", o))
					}
				}
				left, err := s.remains(namespace)
				if err == nil && len(left) > 0 {
					err = fmt.Errorf("%d objects are left in the cluster", len(left))
				}
				return err
			},
		},
	}
}

// run runs the operator of a namespace.
func (s story) run(ctx context.Context, platform *rest.Config, namespace string, config granter.Config) error {
	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		return err
	}
	deps, err := operator.NewDependencies(operator.DependenciesConfig{
		Name: s.operator, RESTConfig: platform, Scheme: s.scheme, Logger: logger, Namespaces: []string{namespace},
	})
	if err != nil {
		return err
	}
	defer deps.Close()
	operatortest.CountReconciliations(ctx, deps.Registry)
	frameworks, err := s.frameworks(deps, namespace, config)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	errs := make([]error, len(frameworks))
	for i, f := range frameworks {
		wg.Go(func() { errs[i] = f.Run(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// frameworks are those of the operator of a namespace.
func (s story) frameworks(deps *operator.Dependencies, namespace string, config granter.Config) ([]*framework.Framework, error) {
	// The accounts are in the namespace that access is for, which no pattern includes.
	named := s.policy
	named.Permissions = append([]v1alpha1.Permission{{Namespace: config.Namespace, Rules: []rbacv1.PolicyRule{configMaps("*")}}}, named.Permissions...)
	named.RoleRefs = append([]v1alpha1.RoleReference{{Kind: "ClusterRole", Name: "view", Namespace: config.Namespace}}, named.RoleRefs...)
	config.Policy = func(*v1alpha1.Cluster, *v1alpha1.AccessRequest) granter.Policy { return named }
	config.Layout = namespaces.Layout{Clusters: s.clustersOf(namespace), Provider: func(asks string) string {
		if asks == namespace {
			return "postgres"
		}
		return ""
	}}
	granting, err := granter.New(deps, config)
	if err != nil {
		return nil, err
	}
	placing, err := scheduler.New(deps, config.Layout)
	return append(granting, placing...), err
}

// state lists what there is of a run on the platform and in the cluster, under names that are the same in every run.
func (s story) state(ctx context.Context, namespace string) ([]client.Object, error) {
	var objects []client.Object
	for _, list := range []client.ObjectList{&v1alpha1.ClusterList{}, &v1alpha1.ClusterRequestList{}, &v1alpha1.AccessRequestList{}, &corev1.SecretList{}} {
		for _, in := range []string{namespace, s.clustersOf(namespace)} {
			if err := s.user.List(ctx, list, client.InNamespace(in)); err != nil {
				return nil, err
			}
			found, err := sameNames(list, namespace)
			if err != nil {
				return nil, err
			}
			objects = append(objects, found...)
		}
	}
	for _, list := range []client.ObjectList{&corev1.ServiceAccountList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}} {
		if err := s.admin.List(ctx, list, client.InNamespace(s.remoteNamespace(namespace)), client.MatchingLabels{"app.kubernetes.io/managed-by": "operatorkit-granter"}); err != nil {
			return nil, err
		}
		found, err := sameNames(list, namespace)
		if err != nil {
			return nil, err
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

// hashes are the ends of names that are made from that of a namespace.
var hashes = regexp.MustCompile(`-a-[0-9a-f]{12}\b`)

// sameNames replaces what names and hashes of a run's namespace are in, and drops times and credentials.
func sameNames(list client.ObjectList, namespace string) ([]client.Object, error) {
	text, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	all := &unstructured.UnstructuredList{}
	same := hashes.ReplaceAllString(strings.ReplaceAll(string(text), namespace, "NAMESPACE"), "-a-HASH")
	if err := json.Unmarshal([]byte(same), &all.Object); err != nil {
		return nil, err
	}
	items, _ := all.Object["items"].([]any)
	var objects []client.Object
	for _, item := range items {
		u := &unstructured.Unstructured{Object: item.(map[string]any)}
		_, kind, _ := strings.Cut(fmt.Sprintf("%T", list), ".")
		u.SetKind(strings.TrimSuffix(kind, "List"))
		u.SetAPIVersion("v1")
		objects = append(objects, u)
	}
	return objects, nil
}

// stable drops what differs from run to run by nature: credentials, their times, and hashes of the namespace's name.
func stable(u *unstructured.Unstructured) {
	objectresource.Normalize(u)
	annotations := u.GetAnnotations()
	for name := range annotations {
		if strings.HasPrefix(name, "clusters.operatorkit.io/") || name == objectresource.AppliedAnnotation {
			annotations[name] = "differs"
		}
	}
	u.SetAnnotations(annotations)
	if u.GetKind() == "Secret" {
		unstructured.RemoveNestedField(u.Object, "data")
	}
	for _, field := range []string{"expirationTime", "renewalTime"} {
		if _, ok, _ := unstructured.NestedString(u.Object, "status", field); ok {
			_ = unstructured.SetNestedField(u.Object, "differs", "status", field)
		}
	}
}

// TestAccessComesAndGoesWhateverWriteToThePlatformTheOperatorCrashesAt crashes scheduler and granter on the platform.
func TestAccessComesAndGoesWhateverWriteToThePlatformTheOperatorCrashesAt(t *testing.T) {
	operatortest.Survives(t, lifeOnThePlatform)
}

// isClaimed is a condition: somebody has the Cluster and both requests.
func (s story) isClaimed(ctx context.Context, user client.Client, namespace string) error {
	cluster, request, ar := &v1alpha1.Cluster{}, s.request(namespace), s.accessRequest(namespace)
	err := errors.Join(
		user.Get(ctx, client.ObjectKey{Namespace: s.clustersOf(namespace), Name: "c"}, cluster),
		user.Get(ctx, client.ObjectKeyFromObject(request), request), user.Get(ctx, client.ObjectKeyFromObject(ar), ar),
	)
	if err == nil && (len(cluster.Annotations) < 2 || len(request.Annotations) == 0 || ar.Status.Granter == "") {
		err = errors.New("nobody has all of them")
	}
	return err
}

// lifeOnThePlatform is the story with mishaps on the platform.
func lifeOnThePlatform(t *testing.T) operatortest.Scenario {
	t.Helper()
	w := newWorld(t)
	s := story{w, func(namespace string) string { return namespace + "-remote" }}
	start := func(s story) func(ctx context.Context, cfg *rest.Config, namespace string) error {
		return func(ctx context.Context, cfg *rest.Config, namespace string) error {
			return s.run(ctx, cfg, namespace, granter.Config{Namespace: s.remoteNamespace(namespace)})
		}
	}
	beside := *w
	beside.operator = "second"
	return operatortest.Scenario{
		Name: "access, platform", Scheme: w.scheme, Config: w.kube.RESTConfig(), Normalize: stable, Parallel: 4, Timeout: 5 * time.Minute,
		Start: start(s), Neighbour: start(story{&beside, s.remoteNamespace}), NeighbourAfter: s.isClaimed,
		Phases: s.phases(t, func(user client.Client) client.Client { return user }),
		List: func(ctx context.Context, _ client.Client, namespace string) ([]client.Object, error) {
			return s.state(ctx, namespace)
		},
		Cleanup: func(ctx context.Context, _ client.Client, namespace string) error {
			return errors.Join(
				client.IgnoreNotFound(w.admin.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.remoteNamespace(namespace)}})),
				client.IgnoreNotFound(w.user.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.clustersOf(namespace)}})),
			)
		},
	}
}

// TestAccessComesAndGoesWhateverWriteToTheClusterTheGranterCrashesAt crashes the granter in the cluster that access is for, beside the
// granter of another platform.
func TestAccessComesAndGoesWhateverWriteToTheClusterTheGranterCrashesAt(t *testing.T) {
	s := storyOfTheCluster(t)
	life := s.lifeInTheCluster(t)
	s.besideAnotherPlatform(t, &life)
	operatortest.BreakAtEveryWrite(t, life)
}

func TestAccessComesAndGoesWhenTheClusterLags(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: it is all that happens with a crash, at a lagging server")
	}
	operatortest.LagAtEveryWrite(t, storyOfTheCluster(t).lifeInTheCluster(t))
}

// storyOfTheCluster is the story in which access is for a namespace of the same name in the cluster.
func storyOfTheCluster(t *testing.T) story {
	t.Helper()
	return story{newWorld(t), func(namespace string) string { return strings.TrimSuffix(namespace, besideSuffix) }}
}

// lifeInTheCluster is the story with mishaps in the cluster that access is for.
func (s story) lifeInTheCluster(t *testing.T) operatortest.Scenario {
	t.Helper()
	w := s.world
	phases := s.phases(t, func(client.Client) client.Client { return w.user })
	ask := phases[0].Do
	phases[0].Do = func(ctx context.Context, user client.Client, namespace string) error {
		if err := w.user.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
			return err
		}
		return ask(ctx, user, namespace)
	}
	return operatortest.Scenario{
		Name: "access, cluster", Scheme: w.scheme, Config: w.remote.RESTConfig(), Normalize: stable, Parallel: 4, Timeout: 5 * time.Minute,
		Start:  s.runInTheCluster,
		Phases: phases,
		List: func(ctx context.Context, _ client.Client, namespace string) ([]client.Object, error) {
			return s.state(ctx, namespace)
		},
		Cleanup: func(ctx context.Context, _ client.Client, namespace string) error {
			return errors.Join(
				client.IgnoreNotFound(w.user.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})),
				client.IgnoreNotFound(w.user.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.clustersOf(namespace)}})),
			)
		},
	}
}

// runInTheCluster runs the operator of a namespace on the platform, which meets what there is in the cluster.
func (s story) runInTheCluster(ctx context.Context, cfg *rest.Config, namespace string) error {
	return s.run(ctx, s.kube.RESTConfig(), namespace, granter.Config{
		Namespace: s.remoteNamespace(namespace),
		WrapTransport: func(_ informer.Key, next http.RoundTripper) http.RoundTripper {
			return cfg.WrapTransport(next)
		},
	})
}

// besideSuffix is what the namespaces of another platform end with.
const besideSuffix = "-beside"

// besideAnotherPlatform has another platform, whose API server is the cluster itself, grant access to the same namespace, by an operator
// and to requests of the same names. It keeps what it has granted while the first one's goes.
func (s story) besideAnotherPlatform(t *testing.T, life *operatortest.Scenario) {
	t.Helper()
	crds, err := operator.ReadCRDs(v1alpha1.CRDs)
	if err != nil {
		t.Fatal(err)
	}
	s.remote.InstallCRDs(t, crds...)
	other := *s.world
	other.kube, other.user = s.remote, s.admin
	theirs := story{&other, s.remoteNamespace}.lifeInTheCluster(t)
	beside := func(do operatortest.Step) operatortest.Step {
		return func(ctx context.Context, user client.Client, namespace string) error {
			return do(ctx, user, namespace+besideSuffix)
		}
	}
	life.Neighbour = func(ctx context.Context, cfg *rest.Config, namespace string) error {
		return theirs.Start(ctx, cfg, namespace+besideSuffix)
	}
	ask, askForLess, takeAway := &life.Phases[0], &life.Phases[1], &life.Phases[2]
	granted, gone := beside(theirs.Phases[0].Until), beside(theirs.Phases[2].Until)
	last := operatortest.Phase{Name: "take away what is beside", Do: beside(theirs.Phases[2].Do), Until: operatortest.All(takeAway.Until, gone)}
	ask.Do, ask.Until = operatortest.All(ask.Do, beside(theirs.Phases[0].Do)), operatortest.All(ask.Until, granted)
	askForLess.Until, takeAway.Until = ask.Until, operatortest.All(takeAway.Until, granted)
	life.Phases = append(life.Phases, last)
	life.Cleanup = operatortest.All(life.Cleanup, beside(theirs.Cleanup))
}
