package platform_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/examples/platform"
	"github.com/operatorkit/operatorkit/operator/command/commandtest"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/servicesets"
	"github.com/operatorkit/operatorkit/operator/statemanagers"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// TestAServiceOfThePlatformIsAsItShouldBeWhateverCrashes has two platforms of different names in one process each, for the same cluster.
func TestAServiceOfThePlatformIsAsItShouldBeWhateverCrashes(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: the two operators that it consists of have tests of this kind, which are run in samples")
	}
	operatortest.BreakAtEveryWrite(t, lifeOfAService(t, ""))
}

// ours has the operators of these tests leave the MultiClusterServices of others alone, who have the control plane at the same time.
var (
	ourLabels = map[string]string{"tests": "platform"}
	ours      = servicesets.Config{MultiClusterServices: labels.SelectorFromSet(ourLabels)}
)

// dashboards is a ConfigMap of the service, as it is on a cluster.
var dashboards = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "dashboards-traffic"}}

// lifeOfAService is the life of a cluster with the service dashboards, which is there, is changed, and goes with its cluster. The clusters of
// all runs are the control plane itself. The provider is the default one if it is empty.
func lifeOfAService(t *testing.T, provider string) operatortest.Scenario {
	t.Helper()
	life := commandtest.Scenario(t, platform.Config(ours, &statemanagers.NativeConfig{}))
	kubeconfig, err := os.ReadFile(operatortest.Start(t).Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	start := func(name string) func(ctx context.Context, cfg *rest.Config, namespace string) error {
		return func(ctx context.Context, cfg *rest.Config, namespace string) error {
			config := platform.Config(ours, &statemanagers.NativeConfig{
				Fetch: fetch.Config{Folder: folder},
				Targets: statemanagers.Targets{MinRetry: 50 * time.Millisecond, MaxRetry: 500 * time.Millisecond, WrapTransport: func(_ target.Key, next http.RoundTripper) http.RoundTripper {
					return cfg.WrapTransport(next) // what goes to the clusters crashes with the rest
				}},
			})
			config.Name = name
			return commandtest.Start(config)(ctx, cfg, namespace)
		}
	}
	claimed := func(ctx context.Context, user client.Client, namespace string) error {
		cluster := &v1alpha1.ClusterDeployment{}
		err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "eu"}, cluster)
		if err == nil && cluster.Annotations["operatorkit.io/claimed-by"] == "" {
			err = errors.New("nobody has the cluster")
		}
		return err
	}
	has := func(queries string) operatortest.Step {
		return func(ctx context.Context, user client.Client, namespace string) error {
			cluster, found := &v1alpha1.ClusterDeployment{}, dashboards.DeepCopy()
			err := errors.Join(
				user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "eu"}, cluster),
				user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: dashboards.Name}, found),
			)
			ready := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionReady)
			if err == nil && (ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != cluster.Generation || !strings.Contains(found.Data["traffic.json"], queries)) {
				err = fmt.Errorf("the cluster says %+v, and has %v", ready, found.Data)
			}
			return err
		}
	}
	life.Start, life.Neighbour, life.NeighbourAfter = start("platform"), start("second"), claimed
	life.Sample = true // each of the two operators that it consists of has a sweep over all points
	life.Timeout, life.Normalize, life.List = 5*time.Minute, withoutIdentities, stateOf
	// The provider is one for all runs: who comes first makes it.
	life.Uncounted = []operatortest.Match{operatortest.Leases, operatortest.Events, func(r operatortest.Request) bool { return r.Resource == "statemanagementproviders" }}
	life.Phases = []operatortest.Phase{
		{
			Name: "place",
			Do: func(ctx context.Context, user client.Client, namespace string) error {
				objects, err := platform.Catalog(namespace, "127.0.0.1:1") // no chart is asked for
				if err != nil {
					return err
				}
				objects = append(objects, platform.Cluster(namespace, "eu", kubeconfig)...)
				spec := &objects[len(objects)-1].(*v1alpha1.ClusterDeployment).Spec.ServiceSpec
				spec.Provider.Name, spec.Services = provider, []v1alpha1.Service{{Namespace: namespace, Name: "dashboards", Template: "dashboards"}}
				return operatortest.Create(objects...)(ctx, user, namespace)
			},
			Until: has("gateway_requests_total[5m]"),
		},
		{
			Name: "change its files",
			Do: func(ctx context.Context, user client.Client, namespace string) error {
				files := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "dashboards"}}
				if err := user.Get(ctx, client.ObjectKeyFromObject(files), files); err != nil {
					return err
				}
				text := strings.ReplaceAll(files.Data["traffic.json"], "[5m]", "[1m]")
				patch, err := json.Marshal(map[string]any{"data": map[string]any{"traffic.json": text}})
				if err != nil {
					return err
				}
				return user.Patch(ctx, files, client.RawPatch(types.MergePatchType, patch))
			},
			Until: has("gateway_requests_total[1m]"),
		},
		{
			Name: "take the cluster away",
			Do: func(ctx context.Context, user client.Client, namespace string) error {
				return user.Delete(ctx, &v1alpha1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "eu"}})
			},
			Until: operatortest.Gone(&v1alpha1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Name: "eu"}}, dashboards),
		},
	}
	return life
}

// stateOf is the cluster, what is to be there, and what is there.
func stateOf(ctx context.Context, user client.Client, namespace string) (objects []client.Object, err error) {
	for _, o := range []client.Object{
		&v1alpha1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Name: "eu"}}, &v1alpha1.ServiceSet{ObjectMeta: metav1.ObjectMeta{Name: "eu"}}, dashboards.DeepCopy(),
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "dashboards-viewer"}}, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "dashboards-viewer"}},
	} {
		err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: o.GetName()}, o)
		switch {
		case err == nil:
			objects = append(objects, o)
		case !apierrors.IsNotFound(err):
			return nil, err
		}
	}
	return objects, nil
}

// identities are what is made from UIDs: those themselves, and fingerprints.
var identities = regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{32,}\b|\b[0-9a-f]{24}\b`)

// withoutIdentities hides what is made from UIDs and the name of a namespace.
func withoutIdentities(u *unstructured.Unstructured) {
	text, err := json.Marshal(u.Object)
	if err != nil {
		return
	}
	_ = json.Unmarshal([]byte(identities.ReplaceAllString(strings.ReplaceAll(string(text), u.GetNamespace(), "NAMESPACE"), "ID")), &u.Object)
}
