package target

import (
	"time"

	"github.com/cenkalti/backoff/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// State is how a cluster is. It is the reason of the condition Reachable, and a label of the metrics.
type State string

// The states. The package's documentation has the whole machine.
const (
	// Connecting says that there is a kubeconfig, and no answer yet. Requests are sent.
	Connecting State = "Connecting"
	// Connected says that the cluster answers. Requests are sent.
	Connected State = "Connected"
	// Unreachable says that the cluster does not answer, or not as a Kubernetes API does. Requests fail at once.
	Unreachable State = "Unreachable"
	// CredentialRefused says that the cluster does not know who we are. Requests fail at once.
	CredentialRefused State = "CredentialRefused"
	// ClusterMissing says that there is no ClusterDeployment. Requests fail at once.
	ClusterMissing State = "ClusterMissing"
	// SecretMissing says that there is no Secret with a kubeconfig, or no such entry in it. Requests fail at once.
	SecretMissing State = "SecretMissing"
	// KubeconfigInvalid says that the kubeconfig can't be used, or must not be. Requests fail at once.
	KubeconfigInvalid State = "KubeconfigInvalid"
)

// States returns all states.
func States() []State {
	return []State{Connecting, Connected, Unreachable, CredentialRefused, ClusterMissing, SecretMissing, KubeconfigInvalid}
}

// ConditionReachable is the type of the condition that tells whether a target cluster can be reached.
const ConditionReachable = v1alpha1.ConditionReachable

// sends tells whether requests are sent in this state.
func (s State) sends() bool { return s == Connecting || s == Connected }

// status is that of the condition.
func (s State) status() metav1.ConditionStatus {
	switch s {
	case Connecting:
		return metav1.ConditionUnknown
	case Connected:
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// pacing is how often a cluster is probed.
type pacing struct{ interval, minRetry, maxRetry time.Duration }

// health is the state machine of one cluster. Only probes and changes of the kubeconfig change the state; requests tell
// when a probe is due. It has no lock of its own.
type health struct {
	pacing pacing
	state  State
	// since is when the state began.
	since time.Time
	// cause is why the cluster can't be reached.
	cause error
	// nextTry is when the next probe is due, and zero when none will be.
	nextTry time.Time
	// doubted is true while the next probe is due because of a request that went wrong.
	doubted bool
	// probed is when the last probe ended, and contact when the cluster answered last.
	probed, contact time.Time
	delays          *backoff.ExponentialBackOff
}

func newHealth(p pacing) health {
	return health{pacing: p, delays: backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(p.minRetry), backoff.WithMaxInterval(p.maxRetry), backoff.WithMultiplier(2),
		backoff.WithRandomizationFactor(0.2), backoff.WithMaxElapsedTime(0),
	)}
}

// become changes the state, and returns false if it is the same already.
func (h *health) become(state State, now time.Time) (changed bool) {
	if h.state == state {
		return false
	}
	h.state, h.since = state, now
	return true
}

// connect begins anew with another kubeconfig, whatever became of the last one. A probe is due.
func (h *health) connect(now time.Time) {
	h.cause, h.nextTry, h.doubted, h.probed, h.contact = nil, now, false, time.Time{}, time.Time{}
	h.delays.Reset()
	h.become(Connecting, now)
}

// disconnect notes that there is no kubeconfig to be used. No probe is due before there is.
func (h *health) disconnect(state State, cause error, now time.Time) (changed bool) {
	same := h.cause != nil && h.cause.Error() == cause.Error()
	h.cause, h.nextTry = cause, time.Time{}
	return h.become(state, now) || !same
}

// answered notes an answer to a request, which puts the next probe off.
func (h *health) answered(now time.Time) {
	h.contact = now
	if h.state == Connected && !h.doubted {
		h.nextTry = now.Add(h.pacing.interval)
	}
}

// doubt notes that something is wrong with an answer, or that none came: a probe is due. In a state in which nothing is sent
// it changes nothing, because the request is from before.
func (h *health) doubt(now time.Time) {
	if !h.state.sends() {
		return
	}
	due := now
	if earliest := h.probed.Add(h.pacing.minRetry); !h.probed.IsZero() && earliest.After(now) {
		due = earliest
	}
	if h.nextTry.After(due) {
		h.nextTry, h.doubted = due, true
	}
}

// conclude takes the result of a probe.
func (h *health) conclude(state State, cause error, now time.Time) (changed bool) {
	h.probed, h.cause, h.doubted = now, cause, false
	if state == Connected {
		h.contact, h.nextTry = now, now.Add(h.pacing.interval)
		h.delays.Reset()
	} else {
		h.nextTry = now.Add(h.delays.NextBackOff())
	}
	return h.become(state, now)
}
