package helm

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	release "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// hookState is what was done for a hook.
type hookState string

const (
	// hookCleared is for a hook whose former object was deleted, and has to go first.
	hookCleared hookState = "cleared"
	// hookBegun is for a hook that is recorded as begun. Its objects may not be there yet.
	hookBegun hookState = "begun"
	// hookRunning is for a hook whose objects were there.
	hookRunning hookState = "running"
	// hooksEnded is for all hooks of an event.
	hooksEnded hookState = "ended"
)

// progress is how far the hooks of an operation are. It is on the Secret of the revision, so that whoever comes next goes on where
// the last one has ended.
type progress struct {
	// Event is that of the hooks.
	Event release.HookEvent `json:"event"`
	// Hook is the place of one of them in their order.
	Hook  int       `json:"hook"`
	State hookState `json:"state"`
	// Since is from when on the time-out of the hook counts.
	Since time.Time `json:"since"`
	// APIVersion, Kind, Namespace and Name are those of the object that is waited for.
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
}

// annotation is the progress as an annotation.
func (p progress) annotation() map[string]string {
	// Texts, numbers and times can always be encoded.
	text, _ := json.Marshal(p)
	return map[string]string{progressAnnotation: string(text)}
}

// of is the progress with the object that is waited for.
func (p progress) of(u *unstructured.Unstructured) progress {
	p.APIVersion, p.Kind, p.Namespace, p.Name = u.GetAPIVersion(), u.GetKind(), u.GetNamespace(), u.GetName()
	return p
}

// object names what is waited for.
func (p progress) object() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(p.APIVersion)
	u.SetKind(p.Kind)
	u.SetNamespace(p.Namespace)
	u.SetName(p.Name)
	return u
}

// progress returns how far the hooks of a revision are; nil where none was begun, or all are over.
func (r *record) progress() *progress {
	p := &progress{}
	if json.Unmarshal([]byte(r.annotations[progressAnnotation]), p) != nil {
		return nil
	}
	return p
}

// hookOutcome is what has become of the hook that an operation waits for.
type hookOutcome struct {
	// waits says what is waited for, and left is how long that may take.
	waits string
	left  time.Duration
	// failed is why the hook has failed, if it has.
	failed error
	// kinds are those of what is waited for.
	kinds []schema.GroupVersionKind
}

// outcome looks at the hook that an operation waits for, if any, as the watches have it.
func (j *job) outcome(ctx context.Context, at *progress) (hookOutcome, error) {
	if at == nil || at.State != hookCleared && at.State != hookRunning {
		return hookOutcome{}, nil
	}
	u := at.object()
	live, err := j.read(ctx, j.live, u)
	if err != nil {
		return hookOutcome{}, err
	}
	o := hookOutcome{left: j.options.timeout - j.config.Clock.Since(at.Since), kinds: []schema.GroupVersionKind{u.GroupVersionKind()}}
	switch {
	case live == nil, at.State == hookCleared && live.GetDeletionTimestamp() == nil:
		return o, nil
	case at.State == hookRunning:
		if done, failed := hookDone(live); done || failed != nil {
			o.failed = failed
			return o, nil
		}
	}
	if o.left <= 0 {
		o.failed = j.tooLate(u)
		return o, nil
	}
	o.waits = fmt.Sprintf("waits for the hook %s: %s", at.Event, describe(u))
	return o, nil
}

// tooLate is the error for a hook that does not end.
func (j *job) tooLate(u *unstructured.Unstructured) error {
	return &hookError{object: describe(u), reason: fmt.Sprintf("did not end within %s", j.options.timeout)}
}

// awaited tells whether a hook has to end, and not only to be there: jobs and pods do.
func awaited(u *unstructured.Unstructured) bool {
	kind := u.GroupVersionKind().GroupKind()
	return kind == carrier.JobKind || kind == podKind
}

// hookDone tells whether the object of a hook has ended well. The error says that it has failed.
func hookDone(live *unstructured.Unstructured) (bool, error) {
	var failed *hookError
	done := true
	switch live.GroupVersionKind().GroupKind() {
	case carrier.JobKind:
		done, failed = jobDone(live)
	case podKind:
		done, failed = podDone(live)
	}
	if failed != nil {
		return false, &hookError{object: describe(live), reason: failed.reason}
	}
	return done, nil
}
