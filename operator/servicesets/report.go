package servicesets

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// report is how far the services of one owner are on one cluster, as it will be once its ServiceSet is written: that is in
// the same reconciliation, and a status that tells it beforehand is written once and not twice.
type report struct {
	owner serviceset.Owner
	key   client.ObjectKey // of the ServiceSet
	// services are those that are listed, and those that are being removed, by key.
	services []serviceReport
	// fault says why nothing can be resolved, if that is so.
	fault *fault
	// entries are what the ServiceSet has.
	entries []v1alpha1.ServiceWithValues
	// deleting tells that the ServiceSet is to go, or is being deleted.
	deleting bool
	// trouble is why states tell only how it was, nil if nothing keeps the state manager from carrying the ServiceSet out.
	trouble *fault
	// unsure is what the state manager says of the ServiceSet if that is not Ready.
	unsure *metav1.Condition
}

// fault is what is wrong with the services of an owner as a whole.
type fault struct{ reason, message string }

// serviceReport is how far one service is.
type serviceReport struct {
	key     client.ObjectKey
	state   v1alpha1.ServiceState
	reason  string
	message string
	// desired tells that the service is listed, and neither disabled nor overridden.
	desired     bool
	ready       bool
	progressing bool
	blocked     bool
	// versions are those on the service's way: now, next, desired.
	versions  [3]v1alpha1.ServiceVersion
	dependsOn []v1alpha1.ServiceDependsOn
	waitsFor  []client.ObjectKey
}

// String says on one line what holds the service up.
func (s *serviceReport) String() string {
	if s.blocked {
		return nameOf(s.key) + ": " + s.message
	}
	return nameOf(s.key) + " " + s.message
}

// newReports reports on all owners of a cluster. The operations are those of serviceset.ComputeClusterOperations.
func newReports(operations []serviceset.OwnerOperation) []*report {
	states := statesOf(operations)
	reports := make([]*report, len(operations))
	for i := range operations {
		reports[i] = newReport(&operations[i], states)
	}
	judge(reports)
	return reports
}

func newReport(o *serviceset.OwnerOperation, states map[client.ObjectKey]*v1alpha1.ServiceState) *report {
	r := &report{owner: o.Owner, key: o.Key}
	set := o.Owner.Set
	if o.Err != nil {
		r.fault = faultOf(o.Err)
	} else {
		set = o.Operation.ServiceSet
		r.deleting = o.Operation.Operation == v1alpha1.ServiceSetOperationDelete || set.DeletionTimestamp != nil
	}
	if set != nil {
		r.entries = set.Spec.Services
	}
	r.standing(o.Operation, set)
	b := newReportBuilder(r, states)
	switch {
	case o.Err != nil:
		b.addUnresolved(r.fault)
	case o.Operation.Resolution != nil:
		b.operation = o.Operation
		for i := range o.Operation.Resolution.Decisions {
			b.addDecision(&o.Operation.Resolution.Decisions[i])
		}
	default:
		b.addLeaving()
	}
	if set != nil {
		b.addRemovals(set.Spec.Removing)
	}
	slices.SortFunc(r.services, func(x, y serviceReport) int {
		return cmp.Or(cmp.Compare(x.key.Namespace, y.key.Namespace), cmp.Compare(x.key.Name, y.key.Name))
	})
	return r
}

// standing finds out what is said of the ServiceSet as a whole. operation and set are nil if there is none.
func (r *report) standing(operation *serviceset.Operation, set *v1alpha1.ServiceSet) {
	if set == nil {
		return
	}
	conditions := set.Status.Conditions
	suspended, reachable := meta.FindStatusCondition(conditions, v1alpha1.ConditionSuspended), meta.FindStatusCondition(conditions, v1alpha1.ConditionReachable)
	switch {
	case operation != nil && operation.Suspended:
		r.trouble = &fault{v1alpha1.ReasonProviderSuspended, fmt.Sprintf(
			"StateManagementProvider %s is suspended: all stays as it is until spec.suspend is taken away", set.Spec.Provider.Name)}
	case suspended != nil && suspended.Status == metav1.ConditionTrue:
		r.trouble = &fault{suspended.Reason, suspended.Message}
	case reachable != nil && reachable.Status == metav1.ConditionFalse:
		r.trouble = &fault{reachable.Reason, "the cluster can't be reached: " + reachable.Message}
	}
	if ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady); ready != nil && ready.Status != metav1.ConditionTrue {
		r.unsure = ready
	}
}

// statesOf returns what state managers report on the services of a cluster: for each service the state in the ServiceSet
// that has it, or else in any that tells of it.
func statesOf(operations []serviceset.OwnerOperation) map[client.ObjectKey]*v1alpha1.ServiceState {
	states := map[client.ObjectKey]*v1alpha1.ServiceState{}
	for _, holders := range []bool{true, false} {
		for i := range operations {
			set := operations[i].Owner.Set
			if set == nil {
				continue
			}
			held := map[client.ObjectKey]bool{}
			for j := range set.Spec.Services {
				held[set.Spec.Services[j].Key()] = true
			}
			for j := range set.Status.Services {
				key := set.Status.Services[j].Key()
				if _, known := states[key]; !known && held[key] == holders {
					states[key] = &set.Status.Services[j]
				}
			}
		}
	}
	return states
}

// faultOf says for a condition why the services of an owner can't be resolved.
func faultOf(err error) *fault {
	var graph *serviceset.GraphError
	var order *serviceset.DependencyError
	switch {
	case errors.As(err, &order) && len(order.Cycle) > 0:
		return &fault{v1alpha1.ReasonDependencyCycle, order.Error()}
	case errors.As(err, &order):
		return &fault{v1alpha1.ReasonDependencyAbsent, order.Error()}
	case errors.As(err, &graph) && len(graph.Cycles) > 0:
		return &fault{v1alpha1.ReasonDependencyCycle, graph.Error()}
	case errors.As(err, &graph):
		return &fault{v1alpha1.ReasonDependencyAbsent, graph.Error()}
	case apierrors.IsNotFound(err):
		return &fault{v1alpha1.ReasonProviderMissing, providerMissing(err)}
	}
	return &fault{v1alpha1.ReasonInvalid, err.Error()}
}

// judge finds out what changes by itself: what waits for something that does not, does not either.
func judge(reports []*report) {
	running := map[client.ObjectKey]*serviceReport{}
	for _, r := range reports {
		for i := range r.services {
			s := &r.services[i]
			if known := running[s.key]; known == nil || known.reason == v1alpha1.ReasonOverridden {
				running[s.key] = s
			}
		}
	}
	j := judgement{running: running, moves: map[*serviceReport]bool{}}
	for _, r := range reports {
		for i := range r.services {
			r.services[i].progressing = j.progressing(&r.services[i])
		}
	}
}

type judgement struct {
	running map[client.ObjectKey]*serviceReport // the service as it is on the cluster, whoever asks
	moves   map[*serviceReport]bool
}

func (j *judgement) progressing(s *serviceReport) bool {
	if moves, known := j.moves[s]; known {
		return moves
	}
	j.moves[s] = false // what waits for itself does not move
	moves := false
	switch s.reason {
	case v1alpha1.ReasonStepping, v1alpha1.ReasonInFlight:
		moves = true
	case v1alpha1.ReasonWaiting, v1alpha1.ReasonRemoving:
		moves = true
		for _, key := range s.waitsFor {
			other := j.running[key]
			moves = moves && (other == nil || other.ready || j.progressing(other))
		}
	}
	j.moves[s] = moves
	return moves
}

// nameOf is what people call a service: with its namespace, unless that is the default.
func nameOf(key client.ObjectKey) string {
	if key.Namespace == "default" {
		return key.Name
	}
	return key.String()
}

// label is what people call a version.
func label(v v1alpha1.ServiceVersion) string {
	if v.Version == "" {
		return v.Template
	}
	return v.Version
}

func names(keys []client.ObjectKey) []string {
	list := make([]string, len(keys))
	for i, key := range keys {
		list[i] = nameOf(key)
	}
	return list
}

func providerMissing(err error) string {
	var status apierrors.APIStatus
	name := ""
	if errors.As(err, &status) && status.Status().Details != nil {
		name = " " + status.Status().Details.Name
	}
	return fmt.Sprintf("StateManagementProvider%s does not exist: create it, or name another one in serviceSpec.provider", name)
}
