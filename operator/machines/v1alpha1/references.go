package v1alpha1

// EnvFrom is what environment variables get from a Secret or a ConfigMap of the same namespace: all of its keys, or one.
//
// +kubebuilder:validation:XValidation:rule="[has(self.secretRef), has(self.configMapRef), has(self.secretKeyRef), has(self.configMapKeyRef)].exists_one(given, given)",message="give one of secretRef, configMapRef, secretKeyRef and configMapKeyRef"
// +kubebuilder:validation:XValidation:rule="has(self.name) == (has(self.secretKeyRef) || has(self.configMapKeyRef))",message="name is the variable for secretKeyRef or configMapKeyRef; with secretRef or configMapRef the variables are named after the keys",fieldPath=".name"
// +kubebuilder:validation:XValidation:rule="!has(self.prefix) || has(self.secretRef) || has(self.configMapRef)",message="prefix is for secretRef and configMapRef",fieldPath=".prefix"
type EnvFrom struct {
	// Name is the name of the variable, with SecretKeyRef and ConfigMapKeyRef.
	// +kubebuilder:validation:MaxLength=250
	// +kubebuilder:validation:Pattern=`^[^=]+$`
	// +optional
	Name string `json:"name,omitempty"`
	// Prefix comes before the keys, with SecretRef and ConfigMapRef. Default: none.
	// +kubebuilder:validation:MaxLength=250
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_.-]*$`
	// +optional
	Prefix string `json:"prefix,omitempty"`
	// SecretRef is a Secret, each key of which is a variable.
	// +optional
	SecretRef *ObjectReference `json:"secretRef,omitempty"`
	// ConfigMapRef is a ConfigMap, each key of whose data is a variable.
	// +optional
	ConfigMapRef *ObjectReference `json:"configMapRef,omitempty"`
	// SecretKeyRef is a key of a Secret.
	// +optional
	SecretKeyRef *KeyReference `json:"secretKeyRef,omitempty"`
	// ConfigMapKeyRef is a key of a ConfigMap.
	// +optional
	ConfigMapKeyRef *KeyReference `json:"configMapKeyRef,omitempty"`
}

// ConfigFrom is a config whose content is in a Secret or a ConfigMap of the same namespace.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretKeyRef) != has(self.configMapKeyRef)",message="give one of secretKeyRef and configMapKeyRef"
type ConfigFrom struct {
	// Name identifies the config within the specification. A config of this name must not be in Configs too.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// SecretKeyRef is a key of a Secret.
	// +optional
	SecretKeyRef *KeyReference `json:"secretKeyRef,omitempty"`
	// ConfigMapKeyRef is a key of a ConfigMap, of its data or its binaryData.
	// +optional
	ConfigMapKeyRef *KeyReference `json:"configMapKeyRef,omitempty"`
}

// ObjectReference names an object of the same namespace.
type ObjectReference struct {
	// Name is the name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// KeyReference names a key of an object of the same namespace.
type KeyReference struct {
	// Name is the name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Key is the key.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}
