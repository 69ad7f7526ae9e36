package servicesets_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/giantswarm/micrologger"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/servicesets"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// TestThreeClustersComeUpWhateverWriteTheOperatorCrashesAt is the script "clusters": twelve services in four layers on each of three clusters,
// from a MultiClusterService and from the cluster itself.
func TestThreeClustersComeUpWhateverWriteTheOperatorCrashesAt(t *testing.T) {
	platform := []v1alpha1.Service{
		service("cert-manager=cert-manager-1.17.1"), service("csi-driver=csi-driver-2.3.0"),
		service("ingress=ingress-4.12.0", "cert-manager"), service("dns=dns-1.15.0", "cert-manager"), service("storage=storage-1.0.4", "csi-driver"),
		service("dex=dex-2.41.1", "ingress", "dns"), service("prometheus=prometheus-27.1.0", "storage"),
		service("grafana=grafana-8.8.2", "dex", "prometheus"), service("alerts=alerts-1.2.0", "prometheus"),
	}
	own := []v1alpha1.Service{
		service("database=database-16.4.0"), service("shop=shop-3.0.1", "database"), service("frontend=frontend-3.0.1", "shop"),
	}
	crashAtEveryWrite(t, operatortest.Scenario{Name: "three clusters come up", Uncounted: []operatortest.Match{isStatusOrEvent}, Phases: []operatortest.Phase{{
		Name: "create",
		Do: operatortest.All(
			createTemplates(slices.Concat(platform, own)), createPlatform(platform),
			operatortest.Create(cluster("paris", "prod", own...), cluster("rome", "prod", own...), cluster("tokyo", "prod", own...)),
		),
		Until: each(platformIsOn("3/3"), isReady("paris"), isReady("rome"), isReady("tokyo")),
	}}})
}

// TestALifeOfServicesEndsAsItShouldWhateverWriteTheOperatorCrashesAt is what the scripts "upgrade", "removal", "owners" and "deletion" tell, one
// after the other.
func TestALifeOfServicesEndsAsItShouldWhateverWriteTheOperatorCrashesAt(t *testing.T) {
	life := asRun(t, lifeOfServices())
	life.Neighbour, life.NeighbourAfter = started(t, life.Scheme, "second"), isClaimed
	operatortest.BreakAtEveryWrite(t, life)
}

// isClaimed is a condition: somebody has what there is in the story from its beginning.
func isClaimed(ctx context.Context, user client.Client, namespace string) error {
	for _, o := range []client.Object{cluster("prod", ""), platformOf(namespace), certManagerChain()} {
		if o.GetName() != platformOf(namespace).Name {
			o.SetNamespace(namespace)
		}
		if err := user.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		if o.GetAnnotations()[claimAnnotation] == "" {
			return fmt.Errorf("nobody has %T %s", o, o.GetName())
		}
	}
	return nil
}

// TestALifeOfServicesEndsAsItShouldWhenTheServerLags tells the same at a lagging API server.
func TestALifeOfServicesEndsAsItShouldWhenTheServerLags(t *testing.T) {
	life := lifeOfServices()
	life.Sample = true // a run takes as long as one with a crash, and there are twice as many
	operatortest.LagAtEveryWrite(t, asRun(t, life))
}

func TestTheOperatorIsQuietWhenItHasNothingToDo(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: it looks at the whole life of services")
	}
	operatortest.Quiet(t, asRun(t, lifeOfServices()))
}

func lifeOfServices() operatortest.Scenario {
	platform := []v1alpha1.Service{service("cert-manager=cert-manager-1.14.2"), service("ingress=ingress-4.12.0", "cert-manager")}
	platform[0].TemplateChain = "cert-manager"
	own := []v1alpha1.Service{service("database=database-16.4.0"), service("shop=shop-3.0.1", "database")}
	steps := []v1alpha1.Service{service("=cert-manager-1.15.0"), service("=cert-manager-1.16.3"), service("=cert-manager-1.17.1")}
	return operatortest.Scenario{Name: "a life of services", Phases: []operatortest.Phase{
		{
			Name: "create",
			Do: operatortest.All(
				createTemplates(slices.Concat(platform, own, steps)), operatortest.Create(certManagerChain()), createPlatform(platform),
				operatortest.Create(cluster("prod", "prod", own...)),
			),
			Until: each(isReady("prod"), platformIsOn("1/1")),
		},
		{
			Name:  "upgrade in three steps",
			Do:    patchPlatform(`[{"op": "replace", "path": "/spec/serviceSpec/services/0/template", "value": "cert-manager-1.17.1"}]`),
			Until: each(isReady("prod"), platformIsOn("1/1"), lists("prod/platform", "cert-manager@1.17.1", "ingress@4.12.0")),
		},
		{
			Name:  "remove one after the other",
			Do:    patchCluster("prod", `[{"op": "replace", "path": "/spec/serviceSpec/services", "value": []}]`),
			Until: each(isReady("prod"), operatortest.Gone(&v1alpha1.ServiceSet{ObjectMeta: metav1.ObjectMeta{Name: "prod"}})),
		},
		{
			Name: "change hands",
			Do: patchCluster("prod", `[{"op": "replace", "path": "/spec/serviceSpec", "value": {"priority": 200, "services":
				[{"name": "ingress", "template": "ingress-4.12.0"}]}}]`),
			Until: each(isReady("prod"), lists("prod", "ingress@4.12.0"), lists("prod/platform", "cert-manager@1.17.1")),
		},
		{
			Name:  "withdraw",
			Do:    deletePlatform,
			Until: each(isReady("prod"), platformIsGone, lists("prod", "ingress@4.12.0")),
		},
		{
			Name:  "delete the cluster",
			Do:    operatortest.Delete(cluster("prod", "")),
			Until: operatortest.Gone(cluster("prod", ""), &v1alpha1.ServiceSet{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}),
		},
	}}
}

// isStatusOrEvent leaves out what would make a long story of many clusters much longer. The other story has a crash at every status.
func isStatusOrEvent(r operatortest.Request) bool {
	return r.Subresource == "status" || r.Resource == "events"
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

// crashAtEveryWrite goes through a story with a state manager that plays along, with a crash before and after every write.
func crashAtEveryWrite(t *testing.T, story operatortest.Scenario) {
	t.Helper()
	operatortest.BreakAtEveryWrite(t, asRun(t, story))
}

// asRun completes a story with the operator and the state manager.
func asRun(t *testing.T, story operatortest.Scenario) operatortest.Scenario {
	t.Helper()
	w := newWorld(t)
	for i := range story.Phases {
		story.Phases[i].Until = whileManaged(story.Phases[i].Until)
	}
	story.Scheme, story.Config, story.List = w.scheme, w.kube.RESTConfig(), listOf
	story.Parallel, story.Timeout = 6, 5*time.Minute // runs wait for most of their time
	story.Start = started(t, w.scheme, "servicesets")
	story.Cleanup = func(ctx context.Context, user client.Client, namespace string) error {
		return dropAll(ctx, user, namespace, namespace)
	}
	return story
}

// started returns what runs an operator under a name.
func started(t *testing.T, scheme *runtime.Scheme, name string) func(ctx context.Context, cfg *rest.Config, namespace string) error {
	t.Helper()
	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, cfg *rest.Config, namespace string) error {
		deps, err := operator.NewDependencies(operator.DependenciesConfig{
			Name: name, RESTConfig: cfg, Scheme: scheme, Logger: logger, Namespaces: []string{namespace},
		})
		if err != nil {
			return err
		}
		defer deps.Close()
		return runOnce(ctx, deps, namespace)
	}
}

// runOnce runs an operator of the namespace, and of the MultiClusterServices that are labelled with its name.
func runOnce(ctx context.Context, deps *operator.Dependencies, namespace string) error {
	operatortest.CountReconciliations(ctx, deps.Registry)
	frameworks, err := servicesets.New(deps, servicesets.Config{
		SystemNamespace: namespace, MultiClusterServices: labels.SelectorFromSet(labels.Set{scenarioLabel: namespace}),
	})
	if err != nil {
		return err
	}
	o, err := operator.New(operator.Config{Name: deps.Name, Logger: deps.Logger, RESTConfig: deps.RESTConfig, Frameworks: frameworks})
	if err != nil {
		return err
	}
	return o.Run(ctx)
}

// whileManaged has the state manager make a step with each look at a condition, which holds only when it has nothing left to do.
func whileManaged(until operatortest.Step) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		busy, err := stateManager{user, namespace}.step(ctx)
		if err == nil && busy {
			err = errors.New("the state manager is at work")
		}
		if err != nil {
			return err
		}
		return until(ctx, user, namespace)
	}
}

// listOf lists what the operator writes. Names that are made from that of the run's namespace are the same for every run.
func listOf(ctx context.Context, user client.Client, namespace string) ([]client.Object, error) {
	clusters, sets, services := &v1alpha1.ClusterDeploymentList{}, &v1alpha1.ServiceSetList{}, &v1alpha1.MultiClusterServiceList{}
	err := errors.Join(
		user.List(ctx, clusters, client.InNamespace(namespace)), user.List(ctx, sets, client.InNamespace(namespace)),
		user.List(ctx, services, client.MatchingLabels{scenarioLabel: namespace}),
	)
	if err != nil {
		return nil, err
	}
	_, hash, _ := strings.Cut(serviceset.ObjectKey("", cluster("x", ""), platformOf(namespace)).Name, ".")
	names := strings.NewReplacer(hash, "HASH", namespace, "NAMESPACE")
	err = errors.Join(rename(clusters, names), rename(sets, names), rename(services, names))
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
	for i := range services.Items {
		objects = append(objects, &services.Items[i])
	}
	return objects, err
}

// rename replaces texts wherever they are in a list.
func rename(list client.ObjectList, names *strings.Replacer) error {
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(names.Replace(string(text))), list)
}

// platformOf is the MultiClusterService of a run.
func platformOf(namespace string, services ...v1alpha1.Service) *v1alpha1.MultiClusterService {
	return &v1alpha1.MultiClusterService{
		ObjectMeta: metav1.ObjectMeta{Name: "platform-" + namespace, Labels: map[string]string{scenarioLabel: namespace}},
		Spec: v1alpha1.MultiClusterServiceSpec{
			ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "prod"}},
			ServiceSpec:     v1alpha1.ServiceSpec{Services: services},
		},
	}
}

func createPlatform(services []v1alpha1.Service) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		return user.Create(ctx, platformOf(namespace, services...))
	}
}

func deletePlatform(ctx context.Context, user client.Client, namespace string) error {
	return user.Delete(ctx, platformOf(namespace))
}

func patchPlatform(document string) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		return user.Patch(ctx, platformOf(namespace), client.RawPatch(types.JSONPatchType, []byte(document)))
	}
}

func patchCluster(name, document string) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		cd := cluster(name, "")
		cd.Namespace = namespace
		return user.Patch(ctx, cd, client.RawPatch(types.JSONPatchType, []byte(document)))
	}
}

// createTemplates creates the templates of services.
func createTemplates(services []v1alpha1.Service) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		var errs []error
		for _, s := range services {
			at := strings.LastIndex(s.Template, "-")
			errs = append(errs, user.Create(ctx, newTemplate(namespace, s.Template[:at], s.Template[at+1:])))
		}
		return errors.Join(errs...)
	}
}

func certManagerChain() *v1alpha1.ServiceTemplateChain {
	chain := &v1alpha1.ServiceTemplateChain{ObjectMeta: metav1.ObjectMeta{Name: "cert-manager"}}
	templates := []string{"cert-manager-1.14.2", "cert-manager-1.15.0", "cert-manager-1.16.3", "cert-manager-1.17.1"}
	for i, name := range templates {
		supported := v1alpha1.SupportedTemplate{Name: name}
		if i+1 < len(templates) {
			supported.AvailableUpgrades = []v1alpha1.AvailableUpgrade{{Name: templates[i+1]}}
		}
		chain.Spec.SupportedTemplates = append(chain.Spec.SupportedTemplates, supported)
	}
	return chain
}

// isReady is a condition: all that a cluster lists is deployed, and its status is about what it lists now.
func isReady(name string) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		cd := &v1alpha1.ClusterDeployment{}
		if err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, cd); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(cd.Status.Conditions, v1alpha1.ConditionReady)
		if cd.Status.ObservedGeneration != cd.Generation || ready == nil || ready.Status != metav1.ConditionTrue {
			return fmt.Errorf("%s is not ready: generation %d, status of %d: %v", name, cd.Generation, cd.Status.ObservedGeneration, ready)
		}
		return nil
	}
}

// platformIsOn is a condition: the MultiClusterService is deployed on so many of its clusters.
func platformIsOn(clusters string) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		mcs := platformOf(namespace)
		if err := user.Get(ctx, client.ObjectKeyFromObject(mcs), mcs); err != nil {
			return err
		}
		if mcs.Status.ObservedGeneration != mcs.Generation || mcs.Status.ClustersDeployed != clusters {
			return fmt.Errorf("the platform is on %s clusters: generation %d, status of %d",
				mcs.Status.ClustersDeployed, mcs.Generation, mcs.Status.ObservedGeneration)
		}
		return nil
	}
}

func platformIsGone(ctx context.Context, user client.Client, namespace string) error {
	mcs := platformOf(namespace)
	if err := user.Get(ctx, client.ObjectKeyFromObject(mcs), mcs); !apierrors.IsNotFound(err) {
		return errors.Join(err, errors.New("the platform is still there"))
	}
	return nil
}

// lists is a condition: a ServiceSet, that of the cluster or that of the platform, has exactly these services.
func lists(name string, want ...string) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		clusterName, _, ofPlatform := strings.Cut(name, "/")
		cd := cluster(clusterName, "")
		cd.Namespace = namespace
		key := client.ObjectKeyFromObject(cd)
		if ofPlatform {
			key = serviceset.ObjectKey(namespace, cd, platformOf(namespace))
		}
		set := &v1alpha1.ServiceSet{}
		if err := user.Get(ctx, key, set); err != nil {
			return err
		}
		if diff := cmp.Diff(want, listed(set)); diff != "" {
			return fmt.Errorf("%s has other services (-want +got):\n%s", name, diff)
		}
		return nil
	}
}
