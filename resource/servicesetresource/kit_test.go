package servicesetresource_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/giantswarm/micrologger"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/servicesetresource"
)

type (
	cluster = *v1alpha1.ClusterDeployment
	service = v1alpha1.Service
	state   = servicesetresource.State
)

// testLabel is on every cluster, with its namespace: the MultiClusterServices of a test select only its own clusters.
const testLabel = "example.com/test"

// kit is a namespace of the real API server, with a client whose writes are recorded and one for people and state managers.
type kit struct {
	t         *testing.T
	server    *operatortest.Instance
	scheme    *runtime.Scheme
	client    client.Client
	user      client.Client
	faults    *operatortest.Faults
	namespace string
	log       *buffer
}

func newKit(t *testing.T) *kit {
	t.Helper()
	server := serve(t)
	k := &kit{
		t: t, server: server, scheme: newScheme(t), faults: operatortest.NewFaults(operatortest.KeepBodies()),
		namespace: server.Namespace(t), log: &buffer{},
	}
	cfg := server.RESTConfig()
	k.user = operatortest.NewClient(t, cfg, k.scheme)
	k.client = operatortest.NewClient(t, k.faults.Wrap(cfg), k.scheme)
	k.provide("native")
	return k
}

// serve starts the API server with the API of service sets.
func serve(t *testing.T) *operatortest.Instance {
	t.Helper()
	server := operatortest.Start(t)
	definitions, err := operator.ReadCRDs(v1alpha1.CRDs)
	if err != nil {
		t.Fatal(err)
	}
	server.InstallCRDs(t, definitions...)
	return server
}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// buffer is where a logger writes to.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (k *kit) logger() micrologger.Logger {
	k.t.Helper()
	logger, err := micrologger.New(micrologger.Config{IOWriter: k.log})
	if err != nil {
		k.t.Fatal(err)
	}
	return logger
}

// provide makes a state manager known, which all tests may share.
func (k *kit) provide(name string) {
	k.t.Helper()
	err := k.user.Create(k.t.Context(), provider(name))
	if err != nil && !apierrors.IsAlreadyExists(err) {
		k.t.Fatal(err)
	}
}

func provider(name string) *v1alpha1.StateManagementProvider {
	return &v1alpha1.StateManagementProvider{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.StateManagementProviderSpec{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"provider": name}}},
	}
}

func (k *kit) create(o client.Object) {
	k.t.Helper()
	if err := k.user.Create(k.t.Context(), o); err != nil {
		k.t.Fatal(err)
	}
}

// patch changes an object as a person would.
func (k *kit) patch(o client.Object, patch string) {
	k.t.Helper()
	if err := k.user.Patch(k.t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		k.t.Fatal(err)
	}
}

// templates creates the templates of services, and of each service those given for it.
func (k *kit) templates(versions map[string][]string) {
	k.t.Helper()
	for name, of := range versions {
		for _, version := range of {
			k.create(template(k.namespace, name, version))
		}
	}
}

func template(namespace, name, version string) *v1alpha1.ServiceTemplate {
	return &v1alpha1.ServiceTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: entry(name, version).Template},
		Spec: v1alpha1.ServiceTemplateSpec{Version: version, Resources: &v1alpha1.FileSource{
			LocalSource: &v1alpha1.LocalSource{Kind: "ConfigMap", Name: name},
		}},
	}
}

// wanted is a service in a version.
func wanted(name, version string, dependsOn ...string) service {
	s := service{Namespace: "default", Name: name, Template: entry(name, version).Template, Version: version}
	for _, d := range dependsOn {
		s.DependsOn = append(s.DependsOn, v1alpha1.ServiceDependsOn{Namespace: "default", Name: d})
	}
	return s
}

// cluster creates a cluster that wants services.
func (k *kit) cluster(name string, services ...service) cluster {
	k.t.Helper()
	cd := clusterOf(k.namespace, name, services...)
	k.create(cd)
	return cd
}

func clusterOf(namespace, name string, services ...service) cluster {
	return &v1alpha1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{testLabel: namespace}},
		Spec:       v1alpha1.ClusterDeploymentSpec{ServiceSpec: v1alpha1.ServiceSpec{Services: services}},
	}
}

// services creates services for all clusters of the test. They go with it.
func (k *kit) services(name string, services ...service) *v1alpha1.MultiClusterService {
	k.t.Helper()
	mcs := servicesOf(k.namespace, name, services...)
	k.create(mcs)
	k.t.Cleanup(func() {
		if err := client.IgnoreNotFound(k.user.Delete(context.Background(), mcs)); err != nil {
			k.t.Error(err)
		}
	})
	return mcs
}

func servicesOf(namespace, name string, services ...service) *v1alpha1.MultiClusterService {
	return &v1alpha1.MultiClusterService{
		ObjectMeta: metav1.ObjectMeta{Name: namespace + "-" + name},
		Spec: v1alpha1.MultiClusterServiceSpec{
			ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{testLabel: namespace}},
			ServiceSpec:     v1alpha1.ServiceSpec{Services: services},
		},
	}
}

// want changes what a cluster wants.
func (k *kit) want(cd cluster, services ...service) {
	k.t.Helper()
	before := cd.DeepCopy()
	cd.Spec.ServiceSpec.Services = services
	if err := k.user.Patch(k.t.Context(), cd, client.MergeFrom(before)); err != nil {
		k.t.Fatal(err)
	}
}

func (k *kit) compute(ctx context.Context, cd cluster) ([]serviceset.OwnerOperation, error) {
	return serviceset.ComputeClusterOperations(ctx, k.user, "operatorkit-system", cd)
}

// resources are those of a cluster, with what changes what they do.
func (k *kit) resources(compute servicesetresource.Compute[cluster]) []framework.Resource {
	k.t.Helper()
	sets, err := servicesetresource.New(servicesetresource.Config[cluster]{Client: k.client, Logger: k.logger(), Compute: compute})
	if err != nil {
		k.t.Fatal(err)
	}
	check, err := servicesetresource.NewCheck(servicesetresource.CheckConfig[cluster]{Compute: compute})
	if err != nil {
		k.t.Fatal(err)
	}
	return []framework.Resource{sets, check}
}

// update reconciles a cluster.
func (k *kit) update(cd cluster) error {
	k.t.Helper()
	return framework.ProcessUpdate(k.t.Context(), cd, k.resources(k.compute))
}

func (k *kit) mustUpdate(cd cluster) {
	k.t.Helper()
	if err := k.update(cd); err != nil {
		k.t.Fatal(err)
	}
}

// set returns a set, and false if there is none.
func (k *kit) set(name string) (*v1alpha1.ServiceSet, bool) {
	k.t.Helper()
	set := &v1alpha1.ServiceSet{}
	err := k.user.Get(k.t.Context(), client.ObjectKey{Namespace: k.namespace, Name: name}, set)
	if client.IgnoreNotFound(err) != nil {
		k.t.Fatal(err)
	}
	return set, err == nil
}

// sets returns all sets of the namespace, by name.
func (k *kit) sets() []v1alpha1.ServiceSet {
	k.t.Helper()
	list := &v1alpha1.ServiceSetList{}
	if err := k.user.List(k.t.Context(), list, client.InNamespace(k.namespace)); err != nil {
		k.t.Fatal(err)
	}
	return list.Items
}

// names returns the services of a set with their versions.
func names(set *v1alpha1.ServiceSet) []string {
	found := []string{}
	for _, s := range set.Spec.Services {
		found = append(found, s.Name+" "+s.Version)
	}
	return found
}

// writesOf returns what was written so far.
func (k *kit) writes() []string {
	var lines []string
	for _, w := range k.faults.Writes() {
		lines = append(lines, w.Request.String())
	}
	return lines
}

// manage is a state manager that is done with all of a set: what it lists is deployed, what is being removed is gone. But some
// services may fail.
func manage(ctx context.Context, c client.Client, set *v1alpha1.ServiceSet, failing ...string) error {
	before := set.DeepCopy()
	report(set, failing...)
	return c.Status().Patch(ctx, set, client.MergeFrom(before))
}

// report writes the states of such a state manager into a set.
func report(set *v1alpha1.ServiceSet, failing ...string) {
	set.Status.Services = nil
	for _, s := range set.Spec.Services {
		state := v1alpha1.ServiceState{Namespace: s.Namespace, Name: s.Name, Template: s.Template, Version: s.Version, State: v1alpha1.ServiceStateDeployed}
		if slices.Contains(failing, s.Name) {
			state.State, state.FailureMessage = v1alpha1.ServiceStateFailed, "the hook failed"
		}
		set.Status.Services = append(set.Status.Services, state)
	}
}

func (k *kit) manage(failing ...string) {
	k.t.Helper()
	for _, set := range k.sets() {
		if err := manage(k.t.Context(), k.user, &set, failing...); err != nil {
			k.t.Fatal(err)
		}
	}
}
