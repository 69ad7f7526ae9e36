package statemanagerresource_test

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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanagerresource"
)

type (
	serviceSet = *v1alpha1.ServiceSet
	work       = statemanager.Work
	operation  = statemanager.Operation
)

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

// desk is a state manager of which every operation is a slip of paper: it notes the services that it was asked to carry out, and
// does for some of them what a test says.
type desk struct {
	does    []string
	answers map[string]func() error
	// set is what it was given last.
	set *statemanager.Set
}

var _ statemanager.StateManager = (*desk)(nil)

func (d *desk) Name() string { return "desk" }

func (d *desk) Compute(context.Context, *statemanager.Set) (*work, error) {
	return nil, errors.New("the resource has a Compute of its own")
}

func (d *desk) CarryOut(_ context.Context, set *statemanager.Set, o *operation) error {
	d.set = set
	d.does = append(d.does, o.Service.Name)
	if answer := d.answers[o.Service.Name]; answer != nil {
		return answer()
	}
	return nil
}

func (d *desk) Release(client.ObjectKey) {}

// always answers with an error.
func always(err error) func() error { return func() error { return err } }

// told is what Done was told.
type told struct {
	service string
	err     error
}

// kit is the resources for one set, whose work a test says.
type kit struct {
	t    *testing.T
	desk *desk
	log  *buffer
	done []told
	// set and work are what Compute answers, unless it fails.
	set   *statemanager.Set
	work  *work
	fails error
	// resources are the one of the services and the check.
	resources []framework.Resource
}

func newKit(t *testing.T, operations ...operation) *kit {
	t.Helper()
	k := &kit{
		t: t, desk: &desk{answers: map[string]func() error{}}, log: &buffer{}, set: &statemanager.Set{ServiceSet: prod()},
		work: &work{Operations: operations},
	}
	logger, err := micrologger.New(micrologger.Config{IOWriter: k.log})
	if err != nil {
		t.Fatal(err)
	}
	compute := func(context.Context, serviceSet) (*statemanager.Set, *work, error) { return k.set, k.work, k.fails }
	services, err := statemanagerresource.New(statemanagerresource.Config[serviceSet]{
		Manager: k.desk, Logger: logger, Compute: compute,
		Done: func(_ context.Context, _ serviceSet, o *operation, err error) {
			k.done = append(k.done, told{o.Service.Name, err})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	check, err := statemanagerresource.NewCheck(statemanagerresource.CheckConfig[serviceSet]{Compute: compute})
	if err != nil {
		t.Fatal(err)
	}
	k.resources = []framework.Resource{services, check}
	return k
}

// prod is a set.
func prod() serviceSet {
	return &v1alpha1.ServiceSet{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "prod"}}
}

// wantDone checks what was carried out since the last time, in this order.
func (k *kit) wantDone(names ...string) {
	k.t.Helper()
	if !slices.Equal(k.desk.does, names) {
		k.t.Errorf("carried out: %v, want %v", k.desk.does, names)
	}
	k.desk.does = nil
}

// operationOf is an operation for a service with changes.
func operationOf(name string, changes ...plan.Change) operation {
	return operation{Service: serviceKey(name), Changes: changes}
}

func serviceKey(name string) client.ObjectKey { return client.ObjectKey{Namespace: "apps", Name: name} }

// changeOf is a change of a ConfigMap.
func changeOf(action plan.Action, name string, fields ...plan.FieldChange) plan.Change {
	return plan.Change{Action: action, Object: plan.Object{APIVersion: "v1", Kind: "ConfigMap", Namespace: "apps", Name: name}, Fields: fields}
}

func creates(name string) operation { return operationOf(name, changeOf(plan.Create, name)) }
func updates(name string) operation { return operationOf(name, changeOf(plan.Update, name)) }
func deletes(name string) operation { return operationOf(name, changeOf(plan.Delete, name)) }

var configMaps = schema.GroupResource{Resource: "configmaps"}

// outdated is what an API server says of an object that has changed meanwhile.
func outdated(name string) error {
	return apierrors.NewConflict(configMaps, name, errors.New("the object has been modified"))
}

// owned is what an API server says of a field that somebody else manages.
func owned() error {
	return apierrors.NewApplyConflict([]metav1.StatusCause{{
		Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "kubectl"`, Field: ".data.text",
	}}, `Apply failed with 1 conflict: conflict with "kubectl": .data.text`)
}
