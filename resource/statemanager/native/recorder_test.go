package native_test

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// recorder is a carrier for the tests of what this package decides: which service is touched when. It holds what it was told to
// put onto a cluster, and records what it is asked to do.
type recorder struct {
	kind v1alpha1.ServiceType

	mu   sync.Mutex
	has  map[client.ObjectKey]*carrier.Found
	does []string
	last map[client.ObjectKey]*carrier.Service
	// health is that of services that are there, by name; Deployed unless it says something else.
	health map[string]v1alpha1.ServicePhase
	// drift is what is different, and fails and refuses what CarryOut and Compute answer, by name.
	drift          map[string][]plan.Change
	fails, refuses map[string]error
	// underWay are the services of which a hook has begun.
	underWay map[string]bool
}

func newRecorder(kind v1alpha1.ServiceType) *recorder {
	return &recorder{
		kind: kind, has: map[client.ObjectKey]*carrier.Found{}, last: map[client.ObjectKey]*carrier.Service{},
		health: map[string]v1alpha1.ServicePhase{}, drift: map[string][]plan.Change{}, fails: map[string]error{}, refuses: map[string]error{},
		underWay: map[string]bool{},
	}
}

var _ carrier.Carrier = (*recorder)(nil)

func (r *recorder) Compute(_ context.Context, _ carrier.Cluster, _ client.Reader, s *carrier.Service) (*carrier.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last[s.Key] = s
	if err := r.refuses[s.Key.Name]; err != nil {
		return nil, err
	}
	found := r.has[s.Key]
	result := &carrier.Result{Found: found, UnderWay: r.underWay[s.Key.Name]}
	object := plan.Object{Kind: "Thing", Namespace: s.Key.Namespace, Name: s.Key.Name}
	if s.Entry == nil {
		if found != nil {
			result.Health.Phase = v1alpha1.ServiceStateDeleting
			result.Changes = []plan.Change{{Action: plan.Delete, Object: object}}
		}
		return result, nil
	}
	same := found != nil && found.Fingerprint == s.Fingerprint
	if found != nil {
		result.Health.Phase, result.Drift = v1alpha1.ServiceStateDeployed, r.drift[s.Key.Name]
		if phase := r.health[s.Key.Name]; phase != "" {
			result.Health = carrier.Health{Phase: phase, Message: "thing is " + string(phase)}
		}
	}
	switch {
	case found == nil:
		result.Changes = []plan.Change{{Action: plan.Create, Object: object, Fields: []plan.FieldChange{{Path: "spec.template", New: s.Entry.Template}}}}
	case !same && s.Config.SyncMode != v1alpha1.SyncModeOneTime:
		result.Changes = []plan.Change{{Action: plan.Update, Object: object}}
	case same && s.Config.SyncMode == v1alpha1.SyncModeContinuousWithDriftDetection:
		result.Changes = result.Drift
	}
	return result, nil
}

func (r *recorder) CarryOut(_ context.Context, _ carrier.Cluster, s *carrier.Service, result *carrier.Result) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	action := result.Changes[0].Action
	r.does = append(r.does, fmt.Sprintf("%s %s", action, s.Key.Name))
	if err := r.fails[s.Key.Name]; err != nil {
		return err
	}
	if action == plan.Delete {
		delete(r.has, s.Key)
		return nil
	}
	delete(r.drift, s.Key.Name)
	r.has[s.Key] = &carrier.Found{
		Key: s.Key, Owner: s.Owner, Type: r.kind, Template: s.Entry.Template, Version: s.Entry.Version, Fingerprint: s.Fingerprint, Seal: carrier.Seal(s.Fingerprint),
	}
	return nil
}

func (r *recorder) List(_ context.Context, _ carrier.Cluster, owner carrier.Owner, _ ...carrier.Keeper) ([]carrier.Found, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []carrier.Found
	for _, found := range r.has {
		if found.Owner.Namespace == owner.Namespace && found.Owner.Name == owner.Name {
			all = append(all, *found)
		}
	}
	return all, nil
}

// done returns what was done since it was asked last.
func (r *recorder) done() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	does := r.does
	r.does = nil
	return does
}

// asked returns what was computed last for a service.
func (r *recorder) asked(namespace, name string) *carrier.Service {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last[types.NamespacedName{Namespace: namespace, Name: name}]
}

// will changes what happens to a service.
func (r *recorder) will(change func(*recorder)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(r)
}
