package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Phase is how far a request is.
//
// +kubebuilder:validation:Enum=Pending;Granted;Denied
type Phase string

// The phases.
const (
	// PhasePending is a request that waits for something that comes by itself, or that a person has to bring.
	PhasePending Phase = "Pending"
	// PhaseGranted is a request that has what it asks for.
	PhaseGranted Phase = "Granted"
	// PhaseDenied is a request that is not granted as it is: it, or what the platform allows, has to change.
	PhaseDenied Phase = "Denied"
)

// ConditionGranted is True when a request has what it asks for; its reason says why when it has not.
const ConditionGranted = "Granted"

// Granted returns ConditionGranted among the conditions of a request, the zero value while nobody has looked at it.
func Granted(conditions []metav1.Condition) metav1.Condition {
	if c := meta.FindStatusCondition(conditions, ConditionGranted); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// ConditionRevoked of an AccessRequest is False while what was granted still works in the cluster although it is denied or being deleted,
// because it can't be taken away there. Its reason says why not. It is there only then.
const ConditionRevoked = "Revoked"

// ConditionReady of a Cluster is True when it answers.
const ConditionReady = "Ready"

// KubeconfigKey is the entry of a Secret that holds a kubeconfig.
const KubeconfigKey = "kubeconfig"

const (
	// AbandonAnnotation has, with the value "true", access ended without cleaning up in the cluster: for one that is gone for good. On a Cluster it is the platform's word, and counts in any case. On an AccessRequest, where the service
	// provider may put it too, it counts while the cluster can't be reached; if that answers again, what was left there is taken away.
	AbandonAnnotation = "clusters.operatorkit.io/abandon"
	// LocalServerAnnotation is, on a Cluster or on a Secret with a kubeconfig, the address of the API server for those who do
	// not run on the platform's network, such as "https://127.0.0.1:6443". Only those who are configured for it look at it.
	LocalServerAnnotation = "clusters.operatorkit.io/local-server"
)

// IsAbandoned tells whether an object carries the AbandonAnnotation. Values other than "true" mean nothing.
func IsAbandoned(o metav1.Object) bool { return o.GetAnnotations()[AbandonAnnotation] == "true" }

// LocalObjectReference names an object by its name alone: its namespace follows from what is referred to.
type LocalObjectReference struct {
	// Name is the name of the object.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// Reasons of the condition Granted of an AccessRequest.
const (
	// ReasonGranted says that the request has what it asks for.
	ReasonGranted = "Granted"
	// ReasonExceedsPolicy says that more is asked for than the platform allows. The request is denied.
	ReasonExceedsPolicy = "ExceedsPolicy"
	// ReasonPolicyInvalid says that the platform's policy has a fault. What was granted stays, and nothing more is granted.
	ReasonPolicyInvalid = "PolicyInvalid"
	// ReasonNoProvider says that the request is in a namespace that is no service provider's. It is denied, whatever it asks for.
	ReasonNoProvider = "NamespaceOfNoProvider"
	// ReasonRequestMissing says that there is no ClusterRequest of that name.
	ReasonRequestMissing = "ClusterRequestMissing"
	// ReasonRequestPending says that the ClusterRequest has no cluster yet.
	ReasonRequestPending = "ClusterRequestPending"
	// ReasonRequestDenied says that the ClusterRequest is denied, and so is the AccessRequest.
	ReasonRequestDenied = "ClusterRequestDenied"
	// ReasonClusterMissing says that there is no Cluster of that name. In a deletion that is waited for, too: what is in the
	// cluster can't be taken away. Bring the Cluster back, or let go by the AbandonAnnotation.
	ReasonClusterMissing = "ClusterMissing"
	// ReasonClusterDeleting says that the Cluster is being deleted. The request is denied.
	ReasonClusterDeleting = "ClusterDeleting"
	// ReasonClusterUnreachable says that the Cluster does not answer, or does not accept the platform's credentials.
	ReasonClusterUnreachable = "ClusterUnreachable"
	// ReasonAccountGone says that the service account was deleted by somebody else, and is made anew.
	ReasonAccountGone = "ServiceAccountGone"
	// ReasonRevoking says that the access is being taken away.
	ReasonRevoking = "Revoking"
	// ReasonFailed says that something went wrong, which is tried again.
	ReasonFailed = "Failed"
)

// Reasons of the condition Granted of a ClusterRequest, beside ReasonGranted and ReasonNoProvider.
const (
	// ReasonNoCluster says that no Cluster has the purpose and the labels.
	ReasonNoCluster = "NoCluster"
	// ReasonNoRoom says that all Clusters that fit have as many requests as they take.
	ReasonNoRoom = "NoRoom"
	// ReasonSelectorInvalid says that the selector can't be read. The request is denied.
	ReasonSelectorInvalid = "SelectorInvalid"
	// ReasonInUse says that the request is being deleted, and waits for the AccessRequests that refer to it.
	ReasonInUse = "InUse"
)
