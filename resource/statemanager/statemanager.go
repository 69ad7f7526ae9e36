package statemanager

import (
	"cmp"
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// Planner works out what has to be done for a set. It changes nothing in the world.
type Planner interface {
	// Name is the name of the state manager, in logs, plans and metrics. It is constant.
	Name() string
	// Compute reads what is and works out what should be. What is wrong with one service is in its Operation and its state;
	// the error is for what concerns the whole set: one for which framework.IsPermanent holds is told in its status, and ends when the set,
	// or what it is made from, changes. The set is not changed.
	Compute(ctx context.Context, set *Set) (*Work, error)
}

// StateManager carries ServiceSets out. It is safe for concurrent use for different sets; for one set it is called by one
// goroutine at a time.
type StateManager interface {
	Planner
	// CarryOut does what an operation of the same reconciliation's Compute says, or returns an error and can be called again
	// after another Compute: after a crash in its middle too. It does not wait until a service is healthy: Compute sees that
	// later. An error for which framework.IsPermanent holds is not tried again before the set, or what it is made from,
	// changes.
	CarryOut(ctx context.Context, set *Set, operation *Operation) error
	// Release forgets a set that is gone, with all that is kept in memory and all connections for it.
	Release(set client.ObjectKey)
}

// Set is a ServiceSet with what it is about. Nothing of it may be changed.
type Set struct {
	// ServiceSet is the set itself. While its deletionTimestamp is set, no service is desired.
	ServiceSet *v1alpha1.ServiceSet
	// Cluster is where the services go. It is nil for the management cluster, and for a cluster that does not exist, which
	// ServiceSet.Spec.Cluster tells apart.
	Cluster *v1alpha1.ClusterDeployment
	// Others are the other ServiceSets of the same cluster, of all owners.
	Others []*v1alpha1.ServiceSet
	// Templates are the ServiceTemplates that the services name, by name. One that does not exist is not in it.
	Templates map[string]*v1alpha1.ServiceTemplate
	// ValueKinds are the kinds, beside v1 ConfigMap, whose objects values templates may be filled with.
	ValueKinds []schema.GroupVersionKind
	// Providers are the names of the provider whose sets the state manager carries out, former ones too.
	Providers []string
	// Config is the configuration in ServiceSet.Spec.Provider: what can be read of it, while the set is being deleted.
	Config Config
}

// SharesProvider tells whether the same state manager carries another set out, be it under a former name of the provider.
func (s *Set) SharesProvider(other *v1alpha1.ServiceSet) bool {
	name := other.Spec.Provider.Name
	return name == s.ServiceSet.Spec.Provider.Name || slices.Contains(s.Providers, cmp.Or(name, v1alpha1.DefaultStateManagementProvider))
}

// Work is what has to be done for a set, and how its services are before it is done.
type Work struct {
	// Operations are in the order in which they are carried out. One that fails does not keep the others from theirs.
	Operations []Operation
	// Services are the states for the status of the set: as they are now, Provisioning or Deleting for what Operations is going
	// to change. A service that is gone is left out, unless the set lists it as one to uninstall: then its state is Deleted.
	Services []v1alpha1.ServiceState
	// Conditions are those of the whole set beside Ready, such as target.ConditionReachable.
	Conditions []metav1.Condition
	// Notes are sentences about the whole set, such as what the deletion waits for, or that a cluster was let go of.
	Notes []string
	// Stale tells that Services are as they were told before, because the cluster can't be looked at now: the generation of the set counts as
	// observed only if it was before.
	Stale bool
	// Left tells, while the set is being deleted, that something of it is still there: the set waits for it.
	Left bool
	// Requeue is after how long to look again without a change, such as at the end of a time-out; zero is never.
	Requeue time.Duration
}

// Operation is what has to be done for one service, or for all services of a set where Service is empty.
type Operation struct {
	// Service is the namespace and the name of the service on the cluster.
	Service client.ObjectKey
	// Changes are what is changed, object by object, in order. Without any, and without Err, there is nothing to do. Values of Secrets
	// are not in them.
	Changes []plan.Change
	// Notes are sentences on what stays as it is, and why.
	Notes []string
	// Err is why the operation can't be worked out. It is told in the state of the service, and tried again unless
	// framework.IsPermanent holds for it.
	Err error
	// Payload is the state manager's own: what CarryOut needs. It is no way to carry anything out.
	Payload any
}
