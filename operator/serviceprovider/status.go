package serviceprovider

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/internal/cut"
)

// ServiceProviderConditionReady is the type of the condition that says whether an object is ready.
const ServiceProviderConditionReady = "Ready"

// The phases of an object.
const (
	// StatusPhaseReady is an object that is ready.
	StatusPhaseReady = "Ready"
	// StatusPhaseProgressing is an object that is not ready, and being created or updated.
	StatusPhaseProgressing = "Progressing"
	// StatusPhaseTerminating is an object that is being deleted.
	StatusPhaseTerminating = "Terminating"
)

// The reasons of the condition Ready that the runtime itself gives.
const (
	ReasonReady = "Ready"
	// ReasonProgressing: the provider is at work.
	ReasonProgressing = "Progressing"
	// ReasonTerminating: the provider is cleaning up.
	ReasonTerminating = "Terminating"
	// ReasonReconcileFailed: there was an error, which the message tells. It is tried again.
	ReasonReconcileFailed = "ReconcileFailed"
	// ReasonClusterUnreachable: a cluster of the object, which the message names, does not answer. It is tried again.
	ReasonClusterUnreachable = "ClusterUnreachable"
	// ReasonConfigAbsent: there is no config of the provider. Its arrival reconciles the object.
	ReasonConfigAbsent = "ProviderConfigAbsent"
	// ReasonConfigDeleted: the config of the provider is being deleted.
	ReasonConfigDeleted = "ProviderConfigDeleted"
	// ReasonAccessPending: access to a cluster was asked for and is not granted yet.
	ReasonAccessPending = "AccessPending"
	// ReasonAccessDenied: access to a cluster is denied. The message says why.
	ReasonAccessDenied = "AccessDenied"
	// ReasonAccessLeaving: access to a cluster is being taken away.
	ReasonAccessLeaving = "AccessLeaving"
	// ReasonClustersLeft: a cluster is let go, and the Reconciler is no PartialDeleter: it can't clean up those that are left.
	ReasonClustersLeft = "ClustersLeft"
)

// messageLimit is the largest length of a message in bytes. The API allows 32 KiB; nobody reads that much.
const messageLimit = 4096

// StatusReady says that the object is ready.
func StatusReady(obj API) {
	tell(obj, StatusPhaseReady, metav1.ConditionTrue, ReasonReady, "the object is ready")
}

// StatusProgressing says that the object is being created or updated. The reason is one word in camel case, ReasonProgressing
// if it is empty.
func StatusProgressing(obj API, reason, message string) {
	tell(obj, StatusPhaseProgressing, metav1.ConditionFalse, cmp.Or(reason, ReasonProgressing), message)
}

// StatusTerminating says that the object is being deleted.
func StatusTerminating(obj API) {
	StatusTerminatingWithReason(obj, ReasonTerminating, "the clean-up is in progress")
}

// StatusTerminatingWithReason says that the object is being deleted and what it waits for. The reason is one word in camel
// case, ReasonTerminating if it is empty.
func StatusTerminatingWithReason(obj API, reason, message string) {
	tell(obj, StatusPhaseTerminating, metav1.ConditionFalse, cmp.Or(reason, ReasonTerminating), message)
}

func tell(obj API, phase string, ready metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(obj.GetConditions(), metav1.Condition{
		Type: ServiceProviderConditionReady, Status: ready, ObservedGeneration: obj.GetGeneration(), Reason: reason, Message: cut.Text(message, messageLimit),
	})
	obj.SetObservedGeneration(obj.GetGeneration())
	obj.SetPhase(phase)
}
