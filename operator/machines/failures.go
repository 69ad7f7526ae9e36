package machines

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/internal/cut"
	"github.com/operatorkit/operatorkit/operator/internal/statuses"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
)

// failures remembers why plans failed, until that is in the status. The zero value is ready to use.
type failures struct {
	mu sync.Mutex
	of map[types.UID]failure
}

// failure is why the last plan of a service failed.
type failure struct {
	// givenUp is set if it is not tried again.
	givenUp *v1alpha1.GivenUp
	message string
	// attempt is what is not done again until again, after a pause. It is empty if nothing keeps it from being done at once.
	attempt string
	version v1alpha1.Version
	pause   time.Duration
	again   time.Time
}

// minPause and maxPause are the first and the longest pause before a plan that failed on a machine which lacks what its containers share.
const (
	minPause = time.Second
	maxPause = 5 * time.Minute
)

// note remembers what became of a plan. It is told in other reconciliations, which may not know what is secret in it.
func (f *failures) note(ctx context.Context, svc *v1alpha1.MachineService, v v1alpha1.Version, p *deployment.Plan, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of == nil {
		f.of = map[types.UID]failure{}
	}
	switch {
	case err == nil:
		delete(f.of, svc.UID)
		return
	case errors.Is(err, deployment.ErrStalePlan), errors.Is(err, errSuperseded), errors.Is(err, context.Canceled):
		// Nothing went wrong.
		return
	}
	before, now := f.of[svc.UID], failure{message: cut.Text(secretscontext.Scrub(ctx, err.Error()), statuses.MaxMessage)}
	if reason := givenUpWhy(err); reason != "" && svc.DeletionTimestamp == nil {
		now.givenUp = &v1alpha1.GivenUp{Version: v, Retry: svc.Annotations[v1alpha1.RetryAnnotation], Reason: reason, Message: now.message}
	}
	if errors.Is(err, api.ErrUnprepared) {
		// What was done on other machines, and undone, wakes the service at once, whatever its backoff.
		now.attempt, now.version, now.pause = attemptOf(svc, v, p), v, minPause
		if before.version == v {
			now.pause = min(max(2*before.pause, minPause), maxPause)
		}
		now.again = time.Now().Add(now.pause)
	}
	f.of[svc.UID] = now
}

// attemptOf stands for what a plan does, for what its user asks for now. IDs are not part of it: those of containers that are made and put
// away are other ones each time.
func attemptOf(svc *v1alpha1.MachineService, v v1alpha1.Version, p *deployment.Plan) string {
	var b strings.Builder
	_, _ = fmt.Fprintln(&b, v, svc.Annotations[v1alpha1.RetryAnnotation], svc.Annotations[v1alpha1.RecreateAnnotation])
	for _, leaf := range p.Describe().Leaves() {
		_, _ = fmt.Fprintln(&b, leaf.Operation, leaf.MachineID, leaf.ContainerName, leaf.Image, leaf.Volume)
	}
	return b.String()
}

// wait returns how long a plan is not carried out yet, because it is the one that failed. One that does something else, such as bringing
// back a container that has ended since, does not wait.
func (f *failures) wait(svc *v1alpha1.MachineService, v v1alpha1.Version, p *deployment.Plan) time.Duration {
	f.mu.Lock()
	last := f.of[svc.UID]
	f.mu.Unlock()
	if last.attempt == "" || last.attempt != attemptOf(svc, v, p) {
		return 0
	}
	return max(0, time.Until(last.again))
}

// givenUpWhy returns the reason why a version is given up, or nothing if it is tried again. A machine that does not answer says nothing
// about a version, and neither does one that lacks what its containers share, or a port, a name or a volume that somebody else has taken.
func givenUpWhy(err error) string {
	var hook *deployment.HookError
	var job *deployment.JobError
	switch {
	case errors.Is(err, docker.ErrUnreachable), errors.Is(err, api.ErrUnprepared):
		return ""
	case errors.Is(err, api.ErrPortTaken), errors.Is(err, api.ErrExists), errors.Is(err, api.ErrOthers):
		// Somebody else was faster. The next plan goes out of the way.
		return ""
	case errors.Is(err, deployment.ErrRolledBack):
		return ReasonRolledBack
	case errors.Is(err, deployment.ErrPaused):
		return ReasonPaused
	case errors.As(err, &hook):
		return ReasonHookFailed
	case errors.As(err, &job):
		return ReasonFailed
	}
	return ""
}

// last returns why the last plan failed, or nothing.
func (f *failures) last(svc *v1alpha1.MachineService) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.of[svc.UID].message
}

// givenUp returns the version that was given up, if it is the one that the service asks for. What was remembered is newer than the
// status. A version of which all containers have worked is not to blame for what fails now, such as an engine that is about to start the
// same container.
func (f *failures) givenUp(svc *v1alpha1.MachineService, v v1alpha1.Version) *v1alpha1.GivenUp {
	if deployed := svc.Status.Deployed; deployed != nil && *deployed == v {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, known := range []*v1alpha1.GivenUp{f.of[svc.UID].givenUp, svc.Status.GivenUp} {
		if known != nil && known.Version == v && known.Retry == svc.Annotations[v1alpha1.RetryAnnotation] {
			return known
		}
	}
	return nil
}

func (f *failures) forget(uid types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.of, uid)
}
