package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// Keys of the Secrets that machines name. Those for TLS are the ones of the type kubernetes.io/tls, that for SSH the one of
// kubernetes.io/ssh-auth.
const (
	// CAKey is the certificate authority of the engine, in PEM.
	CAKey = "ca.crt"
	// CertificateKey and PrivateKeyKey are the certificate and the key of the client, in PEM.
	CertificateKey = "tls.crt"
	PrivateKeyKey  = "tls.key"
	// SSHPrivateKeyKey is the private key, in PEM.
	SSHPrivateKeyKey = "ssh-privatekey"
	// SSHKnownHostsKey are the keys of the machine, in the format of the file known_hosts.
	SSHKnownHostsKey = "known_hosts"
)

// Machine is a machine with a container engine. Its labels are what placements of services ask for.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Address",type=string,JSONPath=`.spec.address`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Unschedulable",type=boolean,priority=1,JSONPath=`.spec.unschedulable`
// +kubebuilder:printcolumn:name="Engine",type=string,JSONPath=`.status.engineVersion`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Machine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec MachineSpec `json:"spec"`
	// +optional
	Status MachineStatus `json:"status,omitzero"`
}

// MachineSpec says how the engine of a machine is reached.
//
// +kubebuilder:validation:XValidation:rule="has(self.tls) == self.address.startsWith('tcp://')",message="an address with tcp:// needs tls, because who can use an engine is root on its machine; other addresses have none"
// +kubebuilder:validation:XValidation:rule="has(self.ssh) == self.address.startsWith('ssh://')",message="an address with ssh:// needs ssh; other addresses have none"
type MachineSpec struct {
	// Address is unix:///path/to/socket, on the machine of the operator; tcp://host:port, with TLS; or ssh://user@host[:port][/path/to/socket],
	// where the socket is /var/run/docker.sock unless it is given.
	//
	// +kubebuilder:validation:MaxLength=500
	// +kubebuilder:validation:Pattern=`^(unix:///[^\s]+|tcp://[^\s/@]+:[0-9]+|ssh://[^\s/@]+@[^\s/@]+(/[^\s]+)?)$`
	Address string `json:"address"`
	// Addresses are IP addresses of the machine, of which services choose whose ports are published on a range of addresses. Default:
	// none, and such services are elsewhere.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=45
	// +listType=set
	// +optional
	Addresses []string `json:"addresses,omitempty"`
	// Ingress marks the machine for ports in mode ingress: a proxy on it serves the containers on it, and those on machines with a
	// meshAddress. Default: it is not for them.
	// +optional
	Ingress *MachineIngress `json:"ingress,omitempty"`
	// MeshAddress is the IP address at which the proxies of other machines reach that of this one, such as the one in a mesh, at port 8442.
	// Default: none, and ports in mode ingress of containers on it are reached by its own proxy alone.
	// +kubebuilder:validation:MaxLength=45
	// +optional
	MeshAddress string `json:"meshAddress,omitempty"`
	// TLS is for addresses with tcp://.
	// +optional
	TLS *MachineTLS `json:"tls,omitempty"`
	// SSH is for addresses with ssh://.
	// +optional
	SSH *MachineSSH `json:"ssh,omitempty"`
	// Unschedulable keeps new containers away from the machine. Those that are on it stay, and are started again; a new version of them
	// is elsewhere. Default: false.
	// +optional
	Unschedulable bool `json:"unschedulable,omitempty"`
	// Gone says that the machine won't come back: what was on it is not there any more, and services are made anew elsewhere.
	// Say it only when it is so: a machine that comes back all the same has its containers still.
	// +optional
	Gone bool `json:"gone,omitempty"`
}

// MachineIngress is how a machine is for ports in mode ingress.
type MachineIngress struct {
	// HostIP is the address of the machine at which its proxy has ports 80 and 443. Default: all addresses.
	// +kubebuilder:validation:MaxLength=45
	// +optional
	HostIP string `json:"hostIP,omitempty"`
}

// MachineTLS is how an engine and its client know each other.
type MachineTLS struct {
	// SecretName is a Secret of the same namespace, with the keys ca.crt, tls.crt and tls.key.
	// +kubebuilder:validation:MinLength=1
	SecretName string `json:"secretName"`
}

// MachineSSH is how a machine and who logs in know each other.
type MachineSSH struct {
	// SecretName is a Secret of the same namespace, with the keys ssh-privatekey and known_hosts.
	// +kubebuilder:validation:MinLength=1
	SecretName string `json:"secretName"`
}

// MachineStatus is what is known of a machine.
type MachineStatus struct {
	// ObservedGeneration is the generation that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions has Ready: True while the engine answers, Unknown when it does not, and False when it can't be used before a
	// person acts.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// EngineVersion is the version of the engine, as it was seen last.
	// +optional
	EngineVersion string `json:"engineVersion,omitempty"`
	// LastSeen is what the machine had for services when it was seen last. It counts while the machine can't be seen, also for an
	// operator that has just started.
	// +optional
	LastSeen *LastSeen `json:"lastSeen,omitempty"`
}

// LastSeen is what a machine has for services.
type LastSeen struct {
	// Containers are those of services of the namespace, whoever made them.
	// +optional
	// +listType=map
	// +listMapKey=name
	Containers []SeenContainer `json:"containers,omitempty"`
	// Volumes are all volumes.
	// +optional
	// +listType=map
	// +listMapKey=name
	Volumes []SeenVolume `json:"volumes,omitempty"`
}

// SeenContainer is a container that was seen.
type SeenContainer struct {
	// Name is the name of the container.
	Name string `json:"name"`
	// Owner says whose it is.
	Owner api.Owner `json:"owner"`
	// Hook tells that it is that of a pre-deploy hook.
	// +optional
	Hook bool `json:"hook,omitempty"`
}

// SeenVolume is a volume that was seen.
type SeenVolume struct {
	// Name is the name of the volume.
	Name string `json:"name"`
	// Driver made it.
	Driver string `json:"driver"`
	// Owner says whose it is. It is empty for what is nobody's.
	// +optional
	Owner api.Owner `json:"owner,omitzero"`
}

// MachineList is a list of Machines.
//
// +kubebuilder:object:root=true
type MachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Machine `json:"items"`
}
