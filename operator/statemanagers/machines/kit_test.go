package machines_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator"
	operatormachines "github.com/operatorkit/operatorkit/operator/machines"
	machinesv1alpha1 "github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/statemanagers/machines"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch"
)

// newScheme knows all kinds that there are in the tests.
func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), machinesv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// install installs the definitions of both groups.
func install(t testing.TB, kube *operatortest.Instance) {
	t.Helper()
	sets, err := operator.ReadCRDs(v1alpha1.CRDs)
	if err != nil {
		t.Fatal(err)
	}
	services, err := operator.ReadCRDs(machinesv1alpha1.CRDs)
	if err != nil {
		t.Fatal(err)
	}
	kube.InstallCRDs(t, append(sets, services...)...)
}

// world is a namespace with a state manager whose sets are told to it. What the operator of MachineServices says of them is written by the
// test.
type world struct {
	t      *testing.T
	kube   *operatortest.Instance
	scheme *runtime.Scheme
	// faults see what the state manager sends; user is for everybody else.
	faults    *operatortest.Faults
	user      client.WithWatch
	manager   *machines.Manager
	namespace string
	set       *statemanager.Set
	// ctx is that of reconciliations.
	ctx context.Context
}

func newWorld(t *testing.T) *world {
	t.Helper()
	kube := operatortest.Start(t)
	install(t, kube)
	w := &world{t: t, kube: kube, scheme: newScheme(t), faults: operatortest.NewFaults(), namespace: kube.Namespace(t), ctx: t.Context()}
	w.user = operatortest.NewClient(t, kube.RESTConfig(), w.scheme)
	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	fetcher, err := fetch.New(fetch.Config{Folder: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	w.manager, err = machines.New(machines.Config{Client: operatortest.NewClient(t, w.faults.Wrap(kube.RESTConfig()), w.scheme), Logger: logger, Fetcher: fetcher})
	if err != nil {
		t.Fatal(err)
	}
	w.set = w.newSet("prod")
	return w
}

// newSet returns a set of the cluster "prod".
func (w *world) newSet(name string) *statemanager.Set {
	return &statemanager.Set{
		ServiceSet: &v1alpha1.ServiceSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, UID: types.UID("uid-of-" + name)},
			Spec:       v1alpha1.ServiceSetSpec{Cluster: "prod", Provider: v1alpha1.StateManagementProviderConfig{Name: "machines"}},
		},
		Config:    statemanager.Config{Priority: v1alpha1.DefaultPriority, SyncMode: v1alpha1.SyncModeContinuous},
		Templates: map[string]*v1alpha1.ServiceTemplate{},
	}
}

// manifest is a MachineService of an image, with more lines of its spec.
func manifest(image string, more ...string) string {
	return "apiVersion: deployment.operatorkit.io/v1alpha1\nkind: MachineService\nmetadata: {name: any}\nspec:\n  replicas: 1\n" +
		"  container: {image: \"" + image + "\"}\n" + strings.Join(more, "\n")
}

// template is a template whose files are in the ConfigMap of its name.
func template(name string) *v1alpha1.ServiceTemplate {
	return &v1alpha1.ServiceTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ServiceTemplateSpec{
		Resources: &v1alpha1.FileSource{LocalSource: &v1alpha1.LocalSource{Kind: statemanager.KindConfigMap, Name: name}},
	}}
}

// files are the ConfigMap with the manifest of a template.
func files(name, manifest string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"service.yaml": manifest}}
}

// create creates objects in the namespace of the world.
func (w *world) create(objects ...client.Object) {
	w.t.Helper()
	for _, o := range objects {
		o.SetNamespace(w.namespace)
		if err := w.user.Create(w.t.Context(), o); err != nil {
			w.t.Fatal(err)
		}
	}
}

// templates makes templates known to a set whose manifests are of an image with their name.
func (w *world) templates(set *statemanager.Set, names ...string) {
	w.t.Helper()
	for _, name := range names {
		err := w.user.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, &corev1.ConfigMap{})
		if apierrors.IsNotFound(err) {
			w.create(files(name, manifest(name)))
		}
		t := template(name)
		t.Namespace = w.namespace
		set.Templates[name] = t
	}
}

// list makes a set list a service "name=template" of the namespace "apps", or change it.
func list(set *statemanager.Set, spec string, dependsOn ...string) *v1alpha1.ServiceWithValues {
	name, template, _ := strings.Cut(spec, "=")
	entry := v1alpha1.ServiceWithValues{Name: name, Namespace: "apps", Template: template, Version: "v-" + template}
	for _, d := range dependsOn {
		entry.DependsOn = append(entry.DependsOn, v1alpha1.ServiceDependsOn{Name: d, Namespace: "apps"})
	}
	services := &set.ServiceSet.Spec.Services
	i := slices.IndexFunc(*services, func(s v1alpha1.ServiceWithValues) bool { return s.Name == name })
	if i < 0 {
		*services = append(*services, entry)
		return &(*services)[len(*services)-1]
	}
	(*services)[i] = entry
	return &(*services)[i]
}

// drop takes services out of a set, as the operator of service sets does.
func drop(set *statemanager.Set, names ...string) {
	spec := &set.ServiceSet.Spec
	for _, name := range names {
		i := slices.IndexFunc(spec.Services, func(s v1alpha1.ServiceWithValues) bool { return s.Name == name })
		gone := v1alpha1.ServiceRemoval{Name: name, Namespace: spec.Services[i].Namespace, DependsOn: spec.Services[i].DependsOn}
		spec.Removing = append(spec.Removing, gone)
		spec.Services = slices.Delete(spec.Services, i, i+1)
	}
}

// reconcile does what one reconciliation of a set does, and returns the work that there was.
func (w *world) reconcile(set *statemanager.Set) *statemanager.Work {
	w.t.Helper()
	work, err := w.manager.Compute(w.ctx, set)
	if err != nil {
		w.t.Fatal(err)
	}
	w.carryOut(set, work)
	return work
}

func (w *world) carryOut(set *statemanager.Set, work *statemanager.Work) {
	w.t.Helper()
	set.ServiceSet.Status.Services = work.Services
	for i := range work.Operations {
		if len(work.Operations[i].Changes) == 0 {
			continue
		}
		if err := w.manager.CarryOut(w.ctx, set, &work.Operations[i]); err != nil {
			w.t.Fatal(err)
		}
	}
}

// settle reconciles a set until there is nothing to do.
func (w *world) settle(set *statemanager.Set) *statemanager.Work {
	w.t.Helper()
	for range 10 {
		if work := w.reconcile(set); changes(work) == 0 {
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

// states are the states of a work, as "name State template: message", in order.
func states(work *statemanager.Work) string {
	var all []string
	for _, s := range work.Services {
		text := fmt.Sprintf("%s %s %s", s.Name, s.State, s.Template)
		if s.FailureMessage != "" {
			text += ": " + s.FailureMessage
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// want reconciles a set until there is nothing to do, and compares the states.
func (w *world) want(set *statemanager.Set, when, want string) *statemanager.Work {
	w.t.Helper()
	work := w.settle(set)
	if got := states(work); got != want {
		w.t.Fatalf("%s: the states are\n%s\nwant\n%s", when, got, want)
	}
	return work
}

// condition returns "Status Reason: message" of a condition of the first service of a work; empty if it has none.
func condition(work *statemanager.Work, kind string) string {
	if len(work.Services) == 0 {
		return ""
	}
	c := meta.FindStatusCondition(work.Services[0].Conditions, kind)
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
}

// service reads a MachineService; nil if there is none.
func (w *world) service(name string) *machinesv1alpha1.MachineService {
	w.t.Helper()
	service := &machinesv1alpha1.MachineService{}
	err := w.user.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, service)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return service
}

// change changes a MachineService as its user would.
func (w *world) change(name string, mutate func(*machinesv1alpha1.MachineService)) {
	w.t.Helper()
	service := w.service(name)
	mutate(service)
	if err := w.user.Update(w.t.Context(), service); err != nil {
		w.t.Fatal(err)
	}
}

// says writes what the operator of MachineServices says of the newest spec of one.
func (w *world) says(name, kind, message string) {
	w.t.Helper()
	service := w.service(name)
	service.Status.ObservedGeneration, service.Status.Conditions = service.Generation, nil
	for _, other := range []string{operatormachines.ConditionReady, operatormachines.ConditionBlocked, operatormachines.ConditionProgressing} {
		c := metav1.Condition{Type: other, Status: metav1.ConditionFalse, Reason: "Test", ObservedGeneration: service.Generation}
		if other == kind {
			c.Status, c.Message = metav1.ConditionTrue, message
		}
		meta.SetStatusCondition(&service.Status.Conditions, c)
	}
	if err := w.user.Status().Update(w.t.Context(), service); err != nil {
		w.t.Fatal(err)
	}
}

// works says that MachineServices are as their specs say.
func (w *world) works(names ...string) {
	w.t.Helper()
	for _, name := range names {
		w.says(name, operatormachines.ConditionReady, "all containers work")
	}
}
