package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ServiceTemplate is one version of a service: a Helm chart, a kustomization or plain manifests. It never changes, so that
// its name says what runs.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=st
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Chart",type=string,JSONPath=`.spec.helm.chart`
// +kubebuilder:printcolumn:name="Chart Version",type=string,JSONPath=`.spec.helm.version`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ServiceTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ServiceTemplateSpec `json:"spec"`
	// +optional
	Status ServiceTemplateStatus `json:"status,omitempty"`
}

// ServiceTemplateSpec is what a service is made of: exactly one of Helm, Kustomize and Resources.
//
// +kubebuilder:validation:XValidation:rule="[has(self.helm), has(self.kustomize), has(self.resources)].filter(x, x).size() == 1",message="a template is one of helm, kustomize and resources: set exactly one"
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a template can't change, because services that use it would change without a step: create a template with another name"
type ServiceTemplateSpec struct {
	// Version is the version that the template stands for. The default is the chart's version, and for what is no chart the
	// name of the template. Versions that are semantic are compared as such, others for equality only.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Version string `json:"version,omitempty"`
	// Helm is a Helm chart.
	//
	// +optional
	Helm *HelmChart `json:"helm,omitempty"`
	// Kustomize is a folder with a kustomization.
	//
	// +optional
	Kustomize *FileSource `json:"kustomize,omitempty"`
	// Resources is a folder with manifests of Kubernetes objects, which are taken in the order of their file names.
	//
	// +optional
	Resources *FileSource `json:"resources,omitempty"`
}

// HelmChart is a version of a chart in a repository.
//
// +kubebuilder:validation:XValidation:rule="self.repository.startsWith('git+') == has(self.ref)",message="a repository of Git has a ref, and no other one has: set it for addresses that begin with git+"
// +kubebuilder:validation:XValidation:rule="!self.repository.startsWith('git+') || !has(self.digest)",message="what is in a repository of Git is pinned by a commit as its ref, not by a digest"
// +kubebuilder:validation:XValidation:rule="self.repository.startsWith('oci://') || !has(self.verify)",message="only what is in an OCI registry has signatures: verify is for addresses that begin with oci://"
type HelmChart struct {
	// Repository is the address of the chart repository: "https://…", "http://…" or "oci://…", or that of a repository of Git:
	// "git+https://…" or "git+http://…".
	//
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^(https?|oci|git[+]https?)://[^/?#]+')",message="a repository is an address that begins with https://, http://, oci://, git+https:// or git+http://"
	Repository string `json:"repository"`
	// Ref is what is taken of a repository of Git: a branch or a tag, as "refs/heads/…" or "refs/tags/…", or a commit as 40 hexadecimal digits.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^(refs/(heads|tags)/[^ ]+|[0-9a-f]{40})$')",message="a ref is refs/heads/ and a branch, refs/tags/ and a tag, or the 40 hexadecimal digits of a commit"
	Ref string `json:"ref,omitempty"`
	// Verify is whose signature the chart has to have in its registry. Default: nobody's.
	//
	// +optional
	Verify *Verification `json:"verify,omitempty"`
	// Chart is the name of the chart in the repository, and in a repository of Git its folder.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Chart string `json:"chart"`
	// Version is the version of the chart: one version, not a range.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^v?[0-9]+(\\\\.[0-9]+){0,2}(-[0-9A-Za-z.-]+)?([+][0-9A-Za-z.-]+)?$')",message="a chart's version is one semantic version like 1.2.3, not a range"
	Version string `json:"version"`
	// Digest is the digest that the chart has to have, as "sha256:…".
	//
	// +optional
	// +kubebuilder:validation:MaxLength=71
	// +kubebuilder:validation:XValidation:rule="self.matches('^sha256:[0-9a-f]{64}$')",message="a digest is sha256: and 64 hexadecimal digits"
	Digest string `json:"digest,omitempty"`
	// SecretName is a Secret in the namespace of the template with the credentials of the repository.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName,omitempty"`
}

// FileSource is where files come from: exactly one of LocalSource and Artifact.
//
// +kubebuilder:validation:XValidation:rule="has(self.localSource) != has(self.artifact)",message="files come from localSource or from artifact: set exactly one"
type FileSource struct {
	// LocalSource is a ConfigMap or a Secret whose entries are the files.
	//
	// +optional
	LocalSource *LocalSource `json:"localSource,omitempty"`
	// Artifact is an archive that is fetched.
	//
	// +optional
	Artifact *Artifact `json:"artifact,omitempty"`
	// Path is the folder in the source. The default is its top.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(p, p == '..')",message="a path is relative to the source and does not lead out of it"
	Path string `json:"path,omitempty"`
}

// LocalSource names a ConfigMap or a Secret in the namespace of the template.
type LocalSource struct {
	// Kind is ConfigMap or Secret.
	//
	// +kubebuilder:validation:Enum=ConfigMap;Secret
	Kind string `json:"kind"`
	// Name is the name of the object.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// Artifact is an archive of files in a registry or on a web server, or the files of a commit of Git.
//
// +kubebuilder:validation:XValidation:rule="self.url.startsWith('git+') == has(self.ref)",message="a repository of Git has a ref, and no other address has: set it for addresses that begin with git+"
// +kubebuilder:validation:XValidation:rule="!self.url.startsWith('git+') || !has(self.digest)",message="what is in a repository of Git is pinned by a commit as its ref, not by a digest"
// +kubebuilder:validation:XValidation:rule="self.url.startsWith('oci://') || !has(self.verify)",message="only what is in an OCI registry has signatures: verify is for addresses that begin with oci://"
type Artifact struct {
	// URL is the address: "oci://…" with a tag, "https://…" or "http://…" of a compressed tar file, or "git+https://…" or "git+http://…" of a
	// repository of Git.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^(https?|oci|git[+]https?)://[^/?#]+')",message="an artifact is an address that begins with https://, http://, oci://, git+https:// or git+http://"
	URL string `json:"url"`
	// Ref is what is taken of a repository of Git: a branch or a tag, as "refs/heads/…" or "refs/tags/…", or a commit as 40 hexadecimal digits.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^(refs/(heads|tags)/[^ ]+|[0-9a-f]{40})$')",message="a ref is refs/heads/ and a branch, refs/tags/ and a tag, or the 40 hexadecimal digits of a commit"
	Ref string `json:"ref,omitempty"`
	// Verify is whose signature the artifact has to have in its registry. Default: nobody's.
	//
	// +optional
	Verify *Verification `json:"verify,omitempty"`
	// Digest is the digest that the archive has to have, as "sha256:…".
	//
	// +optional
	// +kubebuilder:validation:MaxLength=71
	// +kubebuilder:validation:XValidation:rule="self.matches('^sha256:[0-9a-f]{64}$')",message="a digest is sha256: and 64 hexadecimal digits"
	Digest string `json:"digest,omitempty"`
	// SecretName is a Secret in the namespace of the template with credentials.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName,omitempty"`
}

// Verification is whose signature something in an OCI registry has to have.
type Verification struct {
	// CosignKeys are public keys as PEM. One of them has to have signed what is there, as `cosign sign --key` does, beside it in the
	// repository (sha256-….sig).
	//
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=4096
	CosignKeys []string `json:"cosignKeys"`
}

// ServiceTemplateStatus is whether the template can be used.
type ServiceTemplateStatus struct {
	// ObservedGeneration is the generation that the status is about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions are Ready: whether the source could be fetched.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ServiceTemplateList is a list of ServiceTemplates.
//
// +kubebuilder:object:root=true
type ServiceTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ServiceTemplate `json:"items"`
}
