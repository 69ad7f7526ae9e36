package serviceset_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// scene is the objects of a platform in a list, which is read as it is: nothing is copied, so that what is changed is seen.
type scene struct {
	t       testing.TB
	objects []client.Object
	cd      *v1alpha1.ClusterDeployment // nil for the management cluster
}

var errUnreadable = errors.New("unreadable")

// The namespaces of clusters, and of the management cluster.
const (
	clusterNamespace = "platform"
	systemNamespace  = "system"
)

// newScene returns a platform with the default provider and some templates.
func newScene(t testing.TB) *scene {
	s := &scene{t: t}
	s.add(&v1alpha1.StateManagementProvider{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.DefaultStateManagementProvider},
		Spec:       v1alpha1.StateManagementProviderSpec{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"manager": "native"}}},
	})
	for _, namespace := range []string{clusterNamespace, systemNamespace} {
		for _, name := range []string{"a-1.0.0", "a-2.0.0", "b-1.0.0", "c-1.0.0"} {
			t := template(name)
			t.Namespace = namespace
			s.add(t)
		}
	}
	return s
}

func (s *scene) add(objects ...client.Object) { s.objects = append(s.objects, objects...) }

// cluster adds the cluster "prod" with services in the language of the tests.
func (s *scene) cluster(services string) *v1alpha1.ClusterDeployment {
	s.cd = &v1alpha1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: clusterNamespace, Name: "prod", UID: "prod", Labels: map[string]string{"tier": "one"}, CreationTimestamp: metav1.NewTime(created),
	}}
	s.cd.Spec.ServiceSpec.Services = desired(s.t, services)
	s.add(s.cd)
	return s.cd
}

// multi adds a MultiClusterService for clusters of tier one.
func (s *scene) multi(name string, priority int32, services string) *v1alpha1.MultiClusterService {
	mcs := &v1alpha1.MultiClusterService{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(created.Add(time.Hour)),
	}}
	mcs.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "one"}}
	mcs.Spec.ServiceSpec.Priority = priority
	mcs.Spec.ServiceSpec.Services = desired(s.t, services)
	s.add(mcs)
	return mcs
}

// set adds the ServiceSet of an owner, of the cluster's own without mcs, as it was written when the owner had services.
func (s *scene) set(mcs *v1alpha1.MultiClusterService, stored, removing, states string) *v1alpha1.ServiceSet {
	s.t.Helper()
	content := set(s.t, stored, removing, states)
	if content == nil {
		content = &v1alpha1.ServiceSet{}
	}
	key := serviceset.ObjectKey(systemNamespace, s.cd, mcs)
	empty := &v1alpha1.ServiceSet{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: types.UID(key.Name)}}
	made, err := serviceset.NewBuilder(s.cd, empty, &metav1.LabelSelector{MatchLabels: map[string]string{"manager": "native"}}).
		WithMultiClusterService(mcs).WithServicesToDeploy(content.Spec.Services).WithServicesToRemove(content.Spec.Removing).Build()
	if err != nil {
		s.t.Fatal(err)
	}
	made.Status = content.Status
	s.add(made)
	return made
}

// deleting marks an object as one that is being deleted.
func deleting(o client.Object) {
	now := metav1.NewTime(created.Add(2 * time.Hour))
	o.SetDeletionTimestamp(&now)
	o.SetFinalizers([]string{"example.org/held"})
}

// remove takes an object out.
func (s *scene) remove(o client.Object) {
	s.objects = slices.DeleteFunc(s.objects, func(other client.Object) bool { return other == o })
}

// Get implements client.Reader.
func (s *scene) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	for _, o := range s.objects {
		if reflect.TypeOf(o) == reflect.TypeOf(obj) && client.ObjectKeyFromObject(o) == key {
			reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(o).Elem())
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: fmt.Sprintf("%T", obj)}, key.Name)
}

// List implements client.Reader.
func (s *scene) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	var found []runtime.Object
	for _, o := range s.objects {
		if fmt.Sprintf("%TList", o) != fmt.Sprintf("%T", list) ||
			options.Namespace != "" && o.GetNamespace() != options.Namespace ||
			options.LabelSelector != nil && !options.LabelSelector.Matches(labels.Set(o.GetLabels())) {
			continue
		}
		found = append(found, o)
	}
	return meta.SetList(list, found)
}

// unreadable is a scene that can't list one kind.
type unreadable struct {
	*scene
	list string
}

// List implements client.Reader.
func (u unreadable) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if strings.HasSuffix(fmt.Sprintf("%T", list), "."+u.list) {
		return errUnreadable
	}
	return u.scene.List(ctx, list, opts...)
}

// compute computes the operations of the cluster, and checks that this changed nothing.
func (s *scene) compute() []serviceset.OwnerOperation {
	s.t.Helper()
	before := make([]client.Object, len(s.objects))
	for i, o := range s.objects {
		before[i] = o.DeepCopyObject().(client.Object)
	}
	operations, err := serviceset.ComputeClusterOperations(s.t.Context(), s, systemNamespace, s.cd)
	if err != nil {
		s.t.Fatal(err)
	}
	if diff := cmp.Diff(before, s.objects); diff != "" {
		s.t.Fatalf("what was read was changed (-before +after):\n%s", diff)
	}
	return operations
}

// saidOperations returns operations, each on a line.
func saidOperations(operations []serviceset.OwnerOperation) string {
	var b strings.Builder
	for _, o := range operations {
		fmt.Fprintf(&b, "%s %s", shortOwner(o.Owner), o.Key.Name)
		if o.Err != nil {
			fmt.Fprintf(&b, " error: %v\n", o.Err)
			continue
		}
		fmt.Fprintf(&b, " %s:", o.Operation.Operation)
		if set := o.Operation.ServiceSet; o.Operation.Operation != v1alpha1.ServiceSetOperationDelete {
			for line := range strings.Lines(said(set.Spec.Services)) {
				b.WriteString(" [" + strings.TrimSpace(line) + "]")
			}
			if len(set.Spec.Removing) > 0 {
				b.WriteString(" removing [" + strings.ReplaceAll(saidRemovals(set.Spec.Removing), "\n", "] [") + "]")
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func shortOwner(o serviceset.Owner) string {
	return strings.NewReplacer(
		v1alpha1.MultiClusterServiceKind, "mcs", v1alpha1.ClusterDeploymentKind, "cd", v1alpha1.ServiceSetKind, "set", clusterNamespace+"/", "",
	).Replace(o.String())
}
