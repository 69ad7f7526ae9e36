package statemanagers_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/manifest"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// Both operators crash at once, at every write to the management cluster and at every write to the target cluster. Both clusters lag.
func TestServicesAreAsTheyShouldBeWhateverWriteTheOperatorsCrashAt(t *testing.T) {
	operatortest.Survives(t, lifeOfServices)
}

// isClaimed is a condition: somebody has the cluster, as somebody has the provider from the beginning.
func isClaimed(ctx context.Context, user client.Client, namespace string) error {
	cd := &v1alpha1.ClusterDeployment{}
	err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "one"}, cd)
	if err == nil && cd.Annotations[claimAnnotation] == "" {
		err = errors.New("nobody has the cluster")
	}
	return err
}

// lifeOfServices is a life of a chart, of manifests that depend on it and of a kustomization, on a cluster.
func lifeOfServices(t *testing.T) operatortest.Scenario {
	t.Helper()
	w := newWorld(t)
	w.start().settleProvider(w)
	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	start := func(name string) func(ctx context.Context, cfg *rest.Config, namespace string) error {
		return func(ctx context.Context, cfg *rest.Config, namespace string) error {
			deps, err := operator.NewDependencies(operator.DependenciesConfig{
				Name: name, RESTConfig: cfg, Scheme: w.scheme, Logger: logger, Namespaces: []string{namespace},
			})
			if err != nil {
				return err
			}
			defer deps.Close()
			operatortest.CountReconciliations(ctx, deps.Registry)
			config := configOf(t, namespace, nil)
			config.Native.Fetch = fetch.Config{Folder: folder}
			config.LeaveProviders = true
			// What goes to the target cluster goes through the same faults, and crashes with the rest.
			config.Native.Targets.WrapTransport = func(_ target.Key, next http.RoundTripper) http.RoundTripper { return through(cfg, next) }
			sets, managers, err := newOperators(deps, namespace, config)
			if err != nil {
				return err
			}
			o, err := operator.New(operator.Config{Name: deps.Name, Logger: logger, RESTConfig: cfg, Frameworks: append(sets, managers...)})
			if err != nil {
				return err
			}
			return o.Run(ctx)
		}
	}
	return operatortest.Scenario{
		Name: "a life of services", Scheme: w.scheme, Config: w.kube.RESTConfig(), List: listOf, Normalize: normalize,
		Parallel: 8, Timeout: 5 * time.Minute, // runs wait for most of their time
		Uncounted: []operatortest.Match{isSummaryOrEvent},
		Start:     start("platform"), Neighbour: start("second"), NeighbourAfter: isClaimed,
		Phases: []operatortest.Phase{
			{
				Name: "install",
				Do: func(ctx context.Context, user client.Client, namespace string) error {
					return createAll(ctx, user, namespace,
						filesOf("rules", map[string]string{"rules.yaml": mapManifest}), filesTemplate("rules"),
						filesOf("look", kustomization), kustomizeTemplate("look"),
						pageTemplate(w.charts, "1.0.0"), pageTemplate(w.charts, "2.0.0"),
						kubeconfigSecret(t, "one", w.kube.RESTConfig(), ""),
						cluster("one", serviceIn(namespace, "shop=page-1.0.0"), serviceIn(namespace, "rules=rules", "shop"), serviceIn(namespace, "look=look")))
				},
				Until: each(isReady("one"), hasText("shop", "version", "1.0.0"), hasText("rules", "allow", "some"), hasText("my-look", "colour", "blue")),
			},
			{
				Name: "upgrade one, remove the others",
				Do: patchCluster("one", `[
					{"op": "replace", "path": "/spec/serviceSpec/services/0/template", "value": "page-2.0.0"},
					{"op": "remove", "path": "/spec/serviceSpec/services/2"}, {"op": "remove", "path": "/spec/serviceSpec/services/1"}]`),
				Until: each(isReady("one"), hasText("shop", "version", "2.0.0"), operatortest.Gone(configMap("rules"), configMap("my-look"))),
			},
			{
				Name:  "delete the cluster",
				Do:    operatortest.Delete(cluster("one")),
				Until: operatortest.Gone(cluster("one"), &v1alpha1.ServiceSet{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, configMap("shop")),
			},
		},
	}
}

// isSummaryOrEvent leaves out what the operator of service sets sums up in the status of a cluster: its own tests crash there.
func isSummaryOrEvent(r operatortest.Request) bool {
	return r.Resource == "clusterdeployments" && r.Subresource == "status" || r.Resource == "events"
}

// kustomization makes the ConfigMap my-look.
var kustomization = map[string]string{
	"kustomization.yaml": "namePrefix: my-\nresources: [look.yaml]\n",
	"look.yaml":          "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: look}\ndata: {colour: blue}\n",
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// through sends through the faults that a configuration of the harness carries.
func through(cfg *rest.Config, next http.RoundTripper) http.RoundTripper {
	if cfg.WrapTransport == nil {
		return next
	}
	return cfg.WrapTransport(next)
}

// settleProvider waits until nothing is to be written for the provider any more, which all runs share.
func (r *running) settleProvider(w *world) {
	w.t.Helper()
	operatortest.Eventually(w.t, "the provider is ready", func() error {
		provider := &v1alpha1.StateManagementProvider{}
		if err := w.user.Get(w.t.Context(), client.ObjectKey{Name: v1alpha1.DefaultStateManagementProvider}, provider); err != nil {
			return err
		}
		return conditionIs(provider.Status.Conditions, "Ready=True")
	})
	r.stop()
}

func createAll(ctx context.Context, user client.Client, namespace string, objects ...client.Object) error {
	for _, o := range objects {
		o.SetNamespace(namespace)
		if err := user.Create(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

func patchCluster(name, document string) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		cd := cluster(name)
		cd.Namespace = namespace
		return user.Patch(ctx, cd, client.RawPatch(types.JSONPatchType, []byte(document)))
	}
}

// each is a condition: several, of which the first that does not hold is told.
func each(conditions ...operatortest.Step) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		for _, holds := range conditions {
			if err := holds(ctx, user, namespace); err != nil {
				return err
			}
		}
		return nil
	}
}

// isReady is a condition: all that a cluster lists is deployed, its status is about what it lists now, and nothing is on the way.
func isReady(name string) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		cd, set := &v1alpha1.ClusterDeployment{}, &v1alpha1.ServiceSet{}
		key := client.ObjectKey{Namespace: namespace, Name: name}
		if err := errors.Join(user.Get(ctx, key, cd), user.Get(ctx, key, set)); err != nil {
			return err
		}
		if cd.Status.ObservedGeneration != cd.Generation || set.Status.ObservedGeneration != set.Generation || len(set.Spec.Removing) > 0 {
			return fmt.Errorf("generations %d and %d, status of %d and %d", cd.Generation, set.Generation, cd.Status.ObservedGeneration, set.Status.ObservedGeneration)
		}
		return errors.Join(
			conditionIs(cd.Status.Conditions, "Ready=True"), conditionIs(cd.Status.Conditions, "Progressing=False"),
			conditionIs(set.Status.Conditions, "Ready=True"), conditionIs(set.Status.Conditions, "Progressing=False"),
		)
	}
}

// hasText is a condition: a ConfigMap has an entry.
func hasText(name, key, want string) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		cm := &corev1.ConfigMap{}
		if err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, cm); err != nil {
			return err
		}
		if cm.Data[key] != want {
			return fmt.Errorf("it has %v", cm.Data)
		}
		return nil
	}
}

// listOf lists all that the operators write, and all that services consist of. A release stands for its revisions: how many there
// are depends on where the operator crashed, how the last one is does not.
func listOf(ctx context.Context, user client.Client, namespace string) ([]client.Object, error) {
	clusters, sets := &v1alpha1.ClusterDeploymentList{}, &v1alpha1.ServiceSetList{}
	configMaps, secrets := &corev1.ConfigMapList{}, &corev1.SecretList{}
	for _, list := range []client.ObjectList{clusters, sets, configMaps, secrets} {
		if err := user.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
	}
	var objects []client.Object
	for i := range clusters.Items {
		objects = append(objects, &clusters.Items[i])
	}
	for i := range sets.Items {
		for j := range sets.Items[i].Spec.Services {
			sets.Items[i].Spec.Services[j].Generation = 0 // an operator that reads a template late writes a set once more
		}
		objects = append(objects, &sets.Items[i])
	}
	for i := range configMaps.Items {
		objects = append(objects, &configMaps.Items[i])
	}
	releases := map[string]*corev1.Secret{}
	for i := range secrets.Items {
		s := &secrets.Items[i]
		if s.Type != "helm.sh/release.v1" {
			objects = append(objects, s)
			continue
		}
		if s.Labels["status"] != "deployed" && s.Labels["status"] != "superseded" && s.Labels["status"] != "failed" {
			return nil, fmt.Errorf("release %s is left %s", s.Name, s.Labels["status"])
		}
		if s.Labels["status"] == "deployed" {
			releases[s.Labels["name"]] = s
		}
	}
	for _, name := range slices.Sorted(maps.Keys(releases)) {
		objects = append(objects, &corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "release-" + name, Labels: map[string]string{"status": "deployed", carrier.ServiceLabel: name}},
		})
	}
	return objects, nil
}

// identity is what is made from UIDs: those themselves and fingerprints.
var identity = regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{32,}\b|\b[0-9a-f]{24}\b`)

// normalize hides what is made from the UID of a set or the name of a namespace, in inventories too.
func normalize(u *unstructured.Unstructured) {
	namespace := u.GetNamespace()
	if data, ok := u.Object["data"].(map[string]any); ok && strings.HasPrefix(u.GetName(), manifest.InventoryPrefix) {
		for name, value := range data {
			data[name] = plain(value)
		}
	}
	text, err := json.Marshal(u.Object)
	if err != nil {
		return
	}
	_ = json.Unmarshal([]byte(identity.ReplaceAllString(strings.ReplaceAll(string(text), namespace, "NAMESPACE"), "ID")), &u.Object)
}

// plain is what an entry of an inventory says. What can't be read stays as it is, and differs from run to run.
func plain(value any) any {
	text, _ := value.(string)
	content, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return value
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return string(content)
	}
	if content, err = io.ReadAll(unpacked); err != nil {
		return value
	}
	return string(content)
}
