package serviceset_test

import (
	"errors"
	"io/fs"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// apiServer is a real API server, a namespace in it, and a provider for service sets.
type apiServer struct {
	client.Client

	t         *testing.T
	namespace string
	provider  *v1alpha1.StateManagementProvider
}

func startAPIServer(t *testing.T) *apiServer {
	t.Helper()
	kube := operatortest.Start(t)
	kube.InstallCRDs(t, definitions(t)...)
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c := operatortest.NewClient(t, kube.RESTConfig(), scheme)
	s := &apiServer{Client: c, t: t, namespace: kube.Namespace(t)}
	s.provider = &v1alpha1.StateManagementProvider{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace},
		Spec:       v1alpha1.StateManagementProviderSpec{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"manager": "one"}}},
	}
	s.create(s.provider)
	return s
}

func definitions(t *testing.T) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := fs.Glob(v1alpha1.CRDs, "crd/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crds := make([]*apiextensionsv1.CustomResourceDefinition, len(files))
	for i, file := range files {
		data, err := fs.ReadFile(v1alpha1.CRDs, file)
		if err != nil {
			t.Fatal(err)
		}
		crds[i] = &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(data, crds[i]); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	return crds
}

// create creates objects that are gone after the test.
func (s *apiServer) create(objects ...client.Object) {
	s.t.Helper()
	for _, o := range objects {
		if err := s.Create(s.t.Context(), o); err != nil {
			s.t.Fatalf("create %T %s: %v", o, o.GetName(), err)
		}
		s.t.Cleanup(func() {
			if err := client.IgnoreNotFound(s.Delete(contextAfter(s.t), o)); err != nil {
				s.t.Errorf("delete %T %s: %v", o, o.GetName(), err)
			}
		})
	}
}

// templates creates ServiceTemplates whose versions are what stands after the first '-' of their names.
func (s *apiServer) templates(names ...string) {
	s.t.Helper()
	for _, name := range names {
		t := template(name)
		t.Namespace = s.namespace
		t.Spec.Resources = &v1alpha1.FileSource{LocalSource: &v1alpha1.LocalSource{Kind: "ConfigMap", Name: name}}
		s.create(t)
	}
}

func (s *apiServer) chain(name string, ways ...string) {
	s.t.Helper()
	s.create(&v1alpha1.ServiceTemplateChain{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}, Spec: chainSpec(ways...)})
}

// cluster creates a ClusterDeployment with services in the language of the tests.
func (s *apiServer) cluster(name, services string) *v1alpha1.ClusterDeployment {
	s.t.Helper()
	cd := &v1alpha1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name, Labels: map[string]string{"test": s.namespace}},
	}
	cd.Spec.ServiceSpec.Provider.Name = s.provider.Name
	cd.Spec.ServiceSpec.Services = desired(s.t, services)
	s.create(cd)
	return cd
}

// multi creates a MultiClusterService for the clusters of the test, with the name of its namespace before its own.
func (s *apiServer) multi(name string, priority int32, services string) *v1alpha1.MultiClusterService {
	s.t.Helper()
	mcs := &v1alpha1.MultiClusterService{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "." + name}}
	mcs.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"test": s.namespace}}
	mcs.Spec.ServiceSpec.Provider.Name = s.provider.Name
	mcs.Spec.ServiceSpec.Priority = priority
	mcs.Spec.ServiceSpec.Services = desired(s.t, services)
	s.create(mcs)
	return mcs
}

func (s *apiServer) requisites(cd *v1alpha1.ClusterDeployment, mcs *v1alpha1.MultiClusterService) serviceset.OperationRequisites {
	return serviceset.OperationRequisites{
		ObjectKey: serviceset.ObjectKey(s.namespace, cd, mcs), CD: cd, MCS: mcs, SystemNamespace: s.namespace,
	}
}

// apply computes what has to be done, does it, and checks the operation.
func (s *apiServer) apply(cd *v1alpha1.ClusterDeployment, mcs *v1alpha1.MultiClusterService, want v1alpha1.ServiceSetOperation) *v1alpha1.ServiceSet {
	s.t.Helper()
	set, op, err := serviceset.GetServiceSetWithOperation(s.t.Context(), s, s.requisites(cd, mcs))
	if err != nil {
		s.t.Fatal(err)
	}
	if op != want {
		s.t.Fatalf("the operation is %s, not %s: %s", op, want, said(set.Spec.Services))
	}
	if err := serviceset.NewProcessor(s).CreateOrUpdateServiceSet(s.t.Context(), op, set); err != nil {
		s.t.Fatal(err)
	}
	return set
}

// report writes states, as a state manager does.
func (s *apiServer) report(set *v1alpha1.ServiceSet, states string) {
	s.t.Helper()
	set.Status.Services = nil
	lines(s.t, states, func(key client.ObjectKey, words []string) {
		set.Status.Services = append(set.Status.Services, serviceState(key, words))
	})
	if err := s.Status().Update(s.t.Context(), set); err != nil {
		s.t.Fatal(err)
	}
}
