package v1alpha1

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AccessRequest asks for credentials of a cluster, with the permissions it lists and no others. The granter puts them into a
// Secret and renews them for as long as the request exists.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=acr,categories=clusters
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.status.clusterRef.name`
// +kubebuilder:printcolumn:name="Secret",type=string,JSONPath=`.status.secretRef.name`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Granted")].reason`
// +kubebuilder:printcolumn:name="Since",type=date,priority=1,JSONPath=`.status.conditions[?(@.type=="Granted")].lastTransitionTime`
// +kubebuilder:printcolumn:name="Policy",type=string,priority=1,JSONPath=`.status.policy`
// +kubebuilder:printcolumn:name="Expires",type=string,format=date-time,priority=1,JSONPath=`.status.expirationTime`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Granted")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.clusterRef) || has(self.status) && has(self.status.clusterRef) && self.status.clusterRef == oldSelf.status.clusterRef",message="the cluster that access was granted to does not change",fieldPath=".status.clusterRef"
type AccessRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec AccessRequestSpec `json:"spec"`
	// +optional
	Status AccessRequestStatus `json:"status,omitempty"`
}

// AccessRequestSpec is which cluster is asked for, and what should be allowed there.
//
// +kubebuilder:validation:XValidation:rule="has(self.clusterRef) != has(self.requestRef)",message="name the cluster either by clusterRef or by requestRef, not by both"
// +kubebuilder:validation:XValidation:rule="has(self.clusterRef) == has(oldSelf.clusterRef) && (!has(self.clusterRef) || self.clusterRef == oldSelf.clusterRef)",message="the cluster of an AccessRequest does not change: make another one",fieldPath=".clusterRef"
// +kubebuilder:validation:XValidation:rule="has(self.requestRef) == has(oldSelf.requestRef) && (!has(self.requestRef) || self.requestRef == oldSelf.requestRef)",message="the cluster of an AccessRequest does not change: make another one",fieldPath=".requestRef"
// +kubebuilder:validation:XValidation:rule="has(self.oidc) == has(oldSelf.oidc)",message="whether tokens are issued does not change: make another one",fieldPath=".oidc"
type AccessRequestSpec struct {
	// ClusterRef is a Cluster of the platform. Set it or RequestRef.
	//
	// +optional
	ClusterRef *LocalObjectReference `json:"clusterRef,omitempty"`
	// RequestRef is a ClusterRequest in the same namespace, whose cluster is meant. Set it or ClusterRef.
	//
	// +optional
	RequestRef *LocalObjectReference `json:"requestRef,omitempty"`
	// Permissions are what is asked for: 50,000 combinations of group, resource, verb and name at most, in all. They may be changed; the
	// credentials stay the same.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Permissions []Permission `json:"permissions,omitempty"`
	// RoleRefs are roles of the cluster that are asked for.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	RoleRefs []RoleReference `json:"roleRefs,omitempty"`
	// OIDC is who gets the access, if that is somebody whom the cluster knows by an OIDC issuer. No service account is made then and no
	// token issued: the kubeconfig has none, and who uses it brings one of the issuer's. Default: a service account of the request's
	// own.
	//
	// +optional
	OIDC *OIDCIdentity `json:"oidc,omitempty"`
	// TokenLifetime is how long the credentials are valid, from 10 minutes on. They are replaced before they run out. The
	// granter has a largest value, and a default.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10m')",message="an API server gives no tokens for less than 10 minutes: choose 10m or more"
	TokenLifetime *metav1.Duration `json:"tokenLifetime,omitempty"`
}

// Permission is rules, and where they hold.
type Permission struct {
	// Namespace is where the rules hold. Empty is the whole cluster. The granter makes the namespace if there is none, and
	// leaves it when the access ends.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	Namespace string `json:"namespace,omitempty"`
	// Rules are those of a Role, or a ClusterRole.
	//
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	Rules []rbacv1.PolicyRule `json:"rules"`
}

// RoleReference names a role that exists in the cluster, and where it should hold.
//
// +kubebuilder:validation:XValidation:rule="self.kind == 'ClusterRole' || has(self.__namespace__) && size(self.__namespace__) > 0",message="a Role is in a namespace: set namespace"
type RoleReference struct {
	// Kind is Role or ClusterRole.
	//
	// +kubebuilder:validation:Enum=Role;ClusterRole
	Kind string `json:"kind"`
	// Name is the name of the role.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Namespace is where the role holds. It is required for a Role, which is there; without one, a ClusterRole holds in the
	// whole cluster.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	Namespace string `json:"namespace,omitempty"`
}

// AccessRequestStatus is what was granted.
type AccessRequestStatus struct {
	// ObservedGeneration is the generation that the status is about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Phase is Pending, Granted or Denied.
	//
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// Conditions are Granted, which says why when it is not so, and since when it is; and Revoked, which is False while what is not granted
	// any more still works in the cluster.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// ClusterRef is the Cluster that the credentials are for.
	//
	// +optional
	ClusterRef *LocalObjectReference `json:"clusterRef,omitempty"`
	// Provider is the service provider that asks: the one whose namespace it is.
	//
	// +optional
	Provider string `json:"provider,omitempty"`
	// Policy is the name of the policy by which there are credentials. It is empty while there are none, and for a policy without a name.
	//
	// +optional
	Policy string `json:"policy,omitempty"`
	// Granter is the framework that grants the request, and its operator. Other granters leave the request alone.
	//
	// +optional
	Granter string `json:"granter,omitempty"`
	// SecretRef is the Secret with the kubeconfig, under the key "kubeconfig". It is set while there are credentials, also
	// when they can't be renewed at the moment.
	//
	// +optional
	SecretRef *LocalObjectReference `json:"secretRef,omitempty"`
	// ServiceAccount is whom the credentials belong to, in the cluster.
	//
	// +optional
	ServiceAccount *ServiceAccountReference `json:"serviceAccount,omitempty"`
	// ExpirationTime is when the credentials run out.
	//
	// +optional
	ExpirationTime *metav1.Time `json:"expirationTime,omitempty"`
	// RenewalTime is when they are replaced.
	//
	// +optional
	RenewalTime *metav1.Time `json:"renewalTime,omitempty"`
}

// ServiceAccountReference names a service account.
type ServiceAccountReference struct {
	// Namespace is that of the service account.
	Namespace string `json:"namespace"`
	// Name is that of the service account.
	Name string `json:"name"`
}

// AccessRequestList is a list of AccessRequests.
//
// +kubebuilder:object:root=true
type AccessRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []AccessRequest `json:"items"`
}
