package machines

import (
	"context"
	"errors"
	"sync"

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
}

// note remembers what became of a plan. It is told in other reconciliations, which may not know what is secret in it.
func (f *failures) note(ctx context.Context, svc *v1alpha1.MachineService, v v1alpha1.Version, err error) {
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
	message := cut.Text(secretscontext.Scrub(ctx, err.Error()), statuses.MaxMessage)
	f.of[svc.UID] = failure{message: message}
	if reason := givenUpWhy(err); reason != "" && svc.DeletionTimestamp == nil {
		f.of[svc.UID] = failure{message: message, givenUp: &v1alpha1.GivenUp{
			Version: v, Retry: svc.Annotations[v1alpha1.RetryAnnotation], Reason: reason, Message: message,
		}}
	}
}

// givenUpWhy returns the reason why a version is given up, or nothing if it is tried again. A machine that does not answer says nothing
// about a version, and neither does one that lacks what its containers share, or a port, a name or a volume that somebody else has taken.
func givenUpWhy(err error) string {
	var hook *deployment.HookError
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
