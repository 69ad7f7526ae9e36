package v1alpha1

// OIDCIdentity is somebody whom an OIDC issuer vouches for: the claims of the tokens that the issuer gives him, without the prefixes
// that a cluster puts before them.
//
// +kubebuilder:validation:XValidation:rule="has(self.username) || has(self.groups) && size(self.groups) > 0",message="say who it is: set username, groups or both"
type OIDCIdentity struct {
	// Issuer is the URL of the issuer: one of those that the Cluster lists.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^https://`
	Issuer string `json:"issuer"`
	// Username is the claim by which the cluster knows users. Without one, the rights are those of the groups.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Username string `json:"username,omitempty"`
	// Groups are values of the claim by which the cluster knows groups: everybody in one of them gets the rights.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	Groups []string `json:"groups,omitempty"`
}

// OIDCIssuer is an issuer of tokens that a cluster accepts: its API server is configured for it.
type OIDCIssuer struct {
	// URL is that of the issuer, as its tokens have it in the claim iss.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^https://`
	URL string `json:"url"`
	// UsernamePrefix is what the API server puts before the claim of the user.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	UsernamePrefix string `json:"usernamePrefix,omitempty"`
	// GroupsPrefix is what it puts before those of the groups.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	GroupsPrefix string `json:"groupsPrefix,omitempty"`
}

// ReasonIssuerUnknown is the reason of the condition Granted of an AccessRequest for somebody of an issuer that the Cluster does not list.
const ReasonIssuerUnknown = "IssuerUnknown"
