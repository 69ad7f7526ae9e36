package objectresource_test

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	"github.com/giantswarm/micrologger"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

// The types of the resources under test: their primaries are config maps.
type (
	primary  = *corev1.ConfigMap
	config   = objectresource.Config[primary]
	resource = framework.TypedCRUDResource[primary, objectresource.State]
)

// kit is a namespace of the real API server, with a client whose writes are recorded and one for the user's part.
type kit struct {
	t         *testing.T
	client    client.Client
	user      client.Client
	faults    *operatortest.Faults
	namespace string
	log       *buffer
}

func newKit(t *testing.T) *kit {
	t.Helper()
	server := operatortest.Start(t)
	k := &kit{t: t, faults: operatortest.NewFaults(operatortest.KeepBodies()), namespace: server.Namespace(t), log: &buffer{}}
	cfg := server.RESTConfig()
	k.user = operatortest.NewClient(t, cfg, nil)
	k.client = operatortest.NewClient(t, k.faults.Wrap(cfg), nil)
	return k
}

// primary creates a primary.
func (k *kit) primary(name string) primary {
	k.t.Helper()
	p := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: name}}
	k.create(p)
	return p
}

func (k *kit) create(o client.Object) {
	k.t.Helper()
	if err := k.user.Create(k.t.Context(), o); err != nil {
		k.t.Fatal(err)
	}
}

// patch changes an object as a user would, by a merge patch.
func (k *kit) patch(o client.Object, patch string) {
	k.t.Helper()
	err := k.user.Patch(k.t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(patch)), client.FieldOwner("user"))
	if err != nil {
		k.t.Fatal(err)
	}
}

// read returns an object as it is now, and false if it is gone.
func read[T client.Object](k *kit, o T) (T, bool) {
	k.t.Helper()
	err := k.user.Get(k.t.Context(), client.ObjectKeyFromObject(o), o)
	if err != nil && !apierrors.IsNotFound(err) {
		k.t.Fatal(err)
	}
	return o, err == nil
}

func (k *kit) configMap(name string) (*corev1.ConfigMap, bool) {
	k.t.Helper()
	return read(k, k.meta(name))
}

// meta is a config map with nothing but a name.
func (k *kit) meta(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: name}}
}

func (k *kit) logger() micrologger.Logger {
	k.t.Helper()
	logger, err := micrologger.New(micrologger.Config{IOWriter: k.log})
	if err != nil {
		k.t.Fatal(err)
	}
	return logger
}

// resource makes a resource whose desired objects are what the function returns.
func (k *kit) resource(desired func() []client.Object, changes ...func(*config)) *resource {
	k.t.Helper()
	c := config{
		Name:   "children",
		Client: k.client,
		Logger: k.logger(),
		Kinds: []client.Object{
			&corev1.ConfigMap{}, &corev1.Secret{}, &corev1.Service{}, &appsv1.Deployment{}, &rbacv1.ClusterRole{},
		},
		Desired: func(context.Context, primary) ([]client.Object, error) { return desired(), nil },
	}
	for _, change := range changes {
		change(&c)
	}
	r, err := objectresource.New(c)
	if err != nil {
		k.t.Fatal(err)
	}
	return r
}

func adopt(c *config) { c.Adopt = true }

// update reconciles the primary and fails the test if that fails.
func (k *kit) update(r *resource, p primary) {
	k.t.Helper()
	if err := framework.ProcessUpdate(k.t.Context(), p, []framework.Resource{r}); err != nil {
		k.t.Fatal(err)
	}
}

// plan returns what an update of the primary would change, and checks that finding out writes nothing.
func (k *kit) plan(r *resource, p primary) []plan.Change {
	k.t.Helper()
	changes, err := k.tryPlan(r, p)
	if err != nil {
		k.t.Fatal(err)
	}
	return changes
}

func (k *kit) tryPlan(r *resource, p primary) ([]plan.Change, error) {
	k.t.Helper()
	before := len(k.faults.Writes())
	defer func() {
		k.t.Helper()
		for _, w := range k.faults.Writes()[before:] {
			k.t.Errorf("planning wrote: %s", w)
		}
	}()
	current, err := r.GetCurrentState(k.t.Context(), p)
	if err != nil {
		return nil, err
	}
	desired, err := r.GetDesiredState(k.t.Context(), p)
	if err != nil {
		return nil, err
	}
	patch, err := r.NewUpdatePatch(k.t.Context(), p, current, desired)
	if err != nil {
		return nil, err
	}
	var changes []plan.Change
	for _, part := range []func() (objectresource.State, bool){patch.CreateChange, patch.UpdateChange, patch.DeleteChange} {
		if state, ok := part(); ok {
			changes = append(changes, state.Changes()...)
		}
	}
	return changes, nil
}

// wantPlan compares a plan with lines such as "update ConfigMap a" and "  data.key: "x" -> "y"". The marks that every
// object of the resource gets are left out.
func (k *kit) wantPlan(r *resource, p primary, want ...string) {
	k.t.Helper()
	if diff := cmp.Diff(want, lines(k.plan(r, p))); diff != "" {
		k.t.Error(diff)
	}
}

func lines(changes []plan.Change) []string {
	var got []string
	for _, c := range changes {
		got = append(got, string(c.Action)+" "+c.Object.Kind+" "+c.Object.Name)
		for _, f := range c.Fields {
			if c.Action == plan.Create && isMark(f.Path) {
				continue
			}
			got = append(got, "  "+f.String())
		}
	}
	return got
}

func isMark(path string) bool {
	return bytes.Contains([]byte(path), []byte("operatorkit.io/")) || bytes.HasPrefix([]byte(path), []byte("metadata.ownerReferences"))
}

// wantQuiet checks that reconciling again plans and writes nothing.
func (k *kit) wantQuiet(r *resource, p primary) {
	k.t.Helper()
	k.wantPlan(r, p)
	before := len(k.faults.Writes())
	k.update(r, p)
	for _, w := range k.faults.Writes()[before:] {
		k.t.Errorf("a reconciliation without a change wrote: %s", w)
	}
}

func (k *kit) data(name string, data map[string]string) *corev1.ConfigMap {
	cm := k.meta(name)
	cm.Data = data
	return cm
}

func just(objects ...client.Object) func() []client.Object {
	return func() []client.Object {
		copies := make([]client.Object, 0, len(objects))
		for _, o := range objects {
			copies = append(copies, o.DeepCopyObject().(client.Object))
		}
		return copies
	}
}

// unstructuredOf converts an object.
func unstructuredOf(t *testing.T, o client.Object) map[string]any {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	return fields
}

// buffer is a bytes.Buffer for several goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// until waits for a condition.
func (k *kit) until(what string, condition func() bool) {
	k.t.Helper()
	err := wait.PollUntilContextTimeout(k.t.Context(), 20*time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		k.t.Fatalf("waiting until %s: %v", what, err)
	}
}
