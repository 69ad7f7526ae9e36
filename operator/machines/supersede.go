package machines

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
)

// errSuperseded ends a plan whose specification is not the one that is asked for any more.
var errSuperseded = errors.New("the specification, or what it names, has changed, or the service is being deleted")

// rollouts are the plans that are carried out now. The zero value is ready to use.
type rollouts struct {
	mu      sync.Mutex
	running map[informer.Key]rollout
}

type rollout struct {
	version v1alpha1.Version
	cancel  context.CancelCauseFunc
	// machines are those on which it does something.
	machines []string
}

// begin returns a context that ends when the specification changes. The caller calls end.
func (r *rollouts) begin(ctx context.Context, key informer.Key, v v1alpha1.Version, machines []string) (running context.Context, end func()) {
	running, cancel := context.WithCancelCause(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running == nil {
		r.running = map[informer.Key]rollout{}
	}
	r.running[key] = rollout{v, cancel, machines}
	return running, func() {
		cancel(nil)
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.running, key)
	}
}

// on returns the services whose plans do something on a machine now.
func (r *rollouts) on(machine informer.Key) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var services []string
	for key, now := range r.running {
		if key.Namespace == machine.Namespace && slices.Contains(now.machines, machine.Name) {
			services = append(services, key.Name)
		}
	}
	return services
}

// changed ends the plan of a service if it is of another version.
func (r *rollouts) changed(key informer.Key, v v1alpha1.Version) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, ok := r.running[key]
	// Whether a tag has moved is looked at when the plan has ended.
	v.Image = now.version.Image
	if ok && now.version != v {
		now.cancel(errSuperseded)
	}
}

// supersede is the middleware that ends steps which apply something when the specification changes.
func (f *serviceFramework) supersede(ctx context.Context, info framework.StepInfo, next func(context.Context) error) error {
	switch info.Step {
	case framework.StepApplyCreateChange, framework.StepApplyUpdateChange, framework.StepApplyDeleteChange:
	default:
		return next(ctx)
	}
	state, err := f.memo.Get(ctx)
	if err != nil {
		return err
	}
	machines := state.work.Plan.Machines()
	if c, err := f.engines.cluster(state.key.Namespace); err == nil {
		c.touch(state.key.Name, machines)
	}
	running, end := f.rollouts.begin(ctx, state.key, state.version, machines)
	defer func() {
		end()
		f.release(state.key.Namespace, machines)
	}()
	// It may have changed before anybody listened.
	if obj, exists, err := f.services.Get(state.key); err == nil && exists {
		f.rollouts.changed(state.key, f.versionOf(obj.(*v1alpha1.MachineService)))
	}
	following, told := f.follow(running, state)
	defer told()
	err = next(following)
	if err != nil && errors.Is(context.Cause(running), errSuperseded) {
		return &superseded{err}
	}
	return err
}

// release has those of machines looked at again that are being deleted, and the services that wait for what the plan took: a plan has
// ended that did something on them.
func (f *serviceFramework) release(namespace string, machines []string) {
	if c, err := f.engines.cluster(namespace); err == nil && len(machines) > 0 {
		for _, service := range c.waiters() {
			f.engines.tell(informer.Key{Namespace: namespace, Name: machines[0]}, service)
		}
	}
	for _, name := range machines {
		key := informer.Key{Namespace: namespace, Name: name}
		if obj, exists, err := f.machines.Get(key); err == nil && exists && obj.(*v1alpha1.Machine).DeletionTimestamp != nil {
			f.engines.tell(key, "")
		}
	}
}

// superseded is a plan that was ended for another one. It is a conflict: what comes next is on its way.
type superseded struct{ error }

// Status implements apierrors.APIStatus.
func (s *superseded) Status() metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonConflict, Code: http.StatusConflict, Message: s.Error()}
}

// Unwrap returns the cause.
func (s *superseded) Unwrap() error { return s.error }
