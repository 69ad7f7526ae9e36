package sveltos_test

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/giantswarm/micrologger"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/sveltos"
	"github.com/operatorkit/operatorkit/resource/statemanager/sveltos/v1beta1"
)

// published is where Sveltos' own custom resource definitions are, beside the repository, if they are there.
const published = "../../../../shared/fixtures/sveltos"

// onOwn returns a world with small definitions of our own.
func onOwn(t *testing.T) *world {
	t.Helper()
	kube := operatortest.Start(t)
	install(t, kube, os.DirFS("testdata/crd"))
	return newWorld(t, kube)
}

// onBoth runs a test against small definitions of our own, and against the published ones where these are there.
func onBoth(t *testing.T, test func(t *testing.T, w *world)) {
	t.Run("own definitions", func(t *testing.T) { test(t, onOwn(t)) })
	t.Run("published definitions", func(t *testing.T) {
		if testing.Short() {
			t.Skip("left to make test-all: the same again, on another control plane")
		}
		if _, err := os.Stat(published); err != nil {
			t.Skipf("Sveltos' definitions are not in %s: put them there to test against them", filepath.Clean(published))
		}
		kube := second(t)
		install(t, kube, os.DirFS(published))
		test(t, newWorld(t, kube))
	})
}

// The second control plane is shared by the tests of the package, and ends with them.
var (
	secondOnce  sync.Once
	secondPlane *operatortest.Instance
	secondErr   error
)

func second(t *testing.T) *operatortest.Instance {
	t.Helper()
	secondOnce.Do(func() { secondPlane, secondErr = operatortest.Run(context.Background(), operatortest.Config{}) })
	if secondErr != nil {
		t.Fatal(secondErr)
	}
	return secondPlane
}

// install installs Sveltos' definitions from a folder, and those of service sets.
func install(t *testing.T, kube *operatortest.Instance, folder fs.FS) {
	t.Helper()
	for _, from := range []fs.FS{folder, v1alpha1.CRDs} {
		crds, err := operator.ReadCRDs(from)
		if err != nil {
			t.Fatal(err)
		}
		kube.InstallCRDs(t, slices.DeleteFunc(crds, func(c *apiextensionsv1.CustomResourceDefinition) bool { return c == nil })...)
	}
}

// world is a namespace with one set, and someone who plays Sveltos.
type world struct {
	t      *testing.T
	kube   *operatortest.Instance
	scheme *runtime.Scheme
	// faults see what the state manager sends; client is for everybody else.
	faults    *operatortest.Faults
	client    client.WithWatch
	manager   *sveltos.Manager
	namespace string
	// cluster is there, so that the garbage collector leaves what belongs to it.
	cluster *v1alpha1.ClusterDeployment
	set     *statemanager.Set
}

func newWorld(t *testing.T, kube *operatortest.Instance) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	faults := operatortest.NewFaults()
	user := operatortest.NewClient(t, kube.RESTConfig(), scheme)
	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	manager, err := sveltos.New(sveltos.Config{Client: operatortest.NewClient(t, faults.Wrap(kube.RESTConfig()), scheme), Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, kube: kube, scheme: scheme, faults: faults, client: user, manager: manager, namespace: kube.Namespace(t)}
	w.cluster = &v1alpha1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "prod"}}
	if err := user.Create(t.Context(), w.cluster); err != nil {
		t.Fatal(err)
	}
	w.set = w.newSet("prod", "prod")
	return w
}

// newSet returns a set of the cluster "prod", or of the management cluster for "".
func (w *world) newSet(name, cluster string) *statemanager.Set {
	set := &statemanager.Set{
		ServiceSet: &v1alpha1.ServiceSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, UID: types.UID("uid-of-" + name)},
			Spec:       v1alpha1.ServiceSetSpec{Cluster: cluster, Provider: v1alpha1.StateManagementProviderConfig{Name: "sveltos"}},
		},
		Config:    statemanager.Config{Priority: v1alpha1.DefaultPriority, SyncMode: v1alpha1.SyncModeContinuous},
		Templates: map[string]*v1alpha1.ServiceTemplate{},
		Providers: []string{"sveltos", "sveltos-old"},
	}
	if cluster != "" {
		set.Cluster = w.cluster
	}
	return set
}

// chart adds a service with a chart in a version to a set, or changes it.
func chart(set *statemanager.Set, name, version string, dependsOn ...string) *v1alpha1.ServiceWithValues {
	template := name + "-" + version
	set.Templates[template] = &v1alpha1.ServiceTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: template},
		Spec: v1alpha1.ServiceTemplateSpec{Helm: &v1alpha1.HelmChart{
			Repository: "https://charts.example.com", Chart: name, Version: version,
		}},
	}
	return service(set, name, template, version, dependsOn...)
}

// files adds a service with the manifests of a ConfigMap.
func files(set *statemanager.Set, name string, dependsOn ...string) *v1alpha1.ServiceWithValues {
	set.Templates[name] = &v1alpha1.ServiceTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.ServiceTemplateSpec{Resources: &v1alpha1.FileSource{
			LocalSource: &v1alpha1.LocalSource{Kind: "ConfigMap", Name: name},
		}},
	}
	return service(set, name, name, "", dependsOn...)
}

func service(set *statemanager.Set, name, template, version string, dependsOn ...string) *v1alpha1.ServiceWithValues {
	entry := v1alpha1.ServiceWithValues{Name: name, Namespace: "apps", Template: template, Version: version}
	for _, d := range dependsOn {
		entry.DependsOn = append(entry.DependsOn, v1alpha1.ServiceDependsOn{Name: d, Namespace: "apps"})
	}
	spec := &set.ServiceSet.Spec
	i := slices.IndexFunc(spec.Services, func(s v1alpha1.ServiceWithValues) bool { return s.Name == name })
	if i < 0 {
		spec.Services = append(spec.Services, entry)
		return &spec.Services[len(spec.Services)-1]
	}
	spec.Services[i] = entry
	return &spec.Services[i]
}

// drop takes services out of a set, as the operator of service sets does.
func drop(set *statemanager.Set, names ...string) {
	spec := &set.ServiceSet.Spec
	for _, name := range names {
		i := slices.IndexFunc(spec.Services, func(s v1alpha1.ServiceWithValues) bool { return s.Name == name })
		spec.Removing = append(spec.Removing, v1alpha1.ServiceRemoval{Name: name, Namespace: "apps", DependsOn: spec.Services[i].DependsOn})
		spec.Services = slices.Delete(spec.Services, i, i+1)
	}
}

// reconcile does what one reconciliation of a set does, and returns the work that there was.
func (w *world) reconcile(set *statemanager.Set) *statemanager.Work {
	w.t.Helper()
	return w.reconcileIn(w.t.Context(), set)
}

func (w *world) reconcileIn(ctx context.Context, set *statemanager.Set) *statemanager.Work {
	w.t.Helper()
	work, err := w.manager.Compute(ctx, set)
	if err != nil {
		w.t.Fatal(err)
	}
	set.ServiceSet.Status.Services = work.Services
	w.carryOutIn(ctx, set, work)
	return work
}

func (w *world) carryOut(set *statemanager.Set, work *statemanager.Work) {
	w.t.Helper()
	w.carryOutIn(w.t.Context(), set, work)
}

func (w *world) carryOutIn(ctx context.Context, set *statemanager.Set, work *statemanager.Work) {
	w.t.Helper()
	for i := range work.Operations {
		if len(work.Operations[i].Changes) == 0 {
			continue
		}
		if err := w.manager.CarryOut(ctx, set, &work.Operations[i]); err != nil {
			w.t.Fatal(err)
		}
	}
}

// settle reconciles a set until there is nothing to do.
func (w *world) settle(set *statemanager.Set) *statemanager.Work {
	w.t.Helper()
	return w.settleIn(w.t.Context(), set)
}

func (w *world) settleIn(ctx context.Context, set *statemanager.Set) *statemanager.Work {
	w.t.Helper()
	for range 10 {
		if work := w.reconcileIn(ctx, set); changes(work) == 0 {
			return work
		}
	}
	w.t.Fatal("there is always something to do")
	return nil
}

func changes(work *statemanager.Work) (n int) {
	for _, o := range work.Operations {
		n += len(o.Changes)
	}
	return n
}

// phases are the states of a work by the names of the services.
func phases(work *statemanager.Work) map[string]v1alpha1.ServicePhase {
	all := map[string]v1alpha1.ServicePhase{}
	for _, s := range work.Services {
		all[s.Name] = s.State
	}
	return all
}
