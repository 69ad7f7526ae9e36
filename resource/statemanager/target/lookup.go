package target

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// Where a kubeconfig is unless the ClusterDeployment says otherwise. These are the conventions of Cluster API.
const (
	// DefaultSecretSuffix follows the name of the cluster in the name of the Secret.
	DefaultSecretSuffix = "-kubeconfig"
	// DefaultSecretKey is the entry of the Secret.
	DefaultSecretKey = "value"
)

// managementFingerprint is that of the management cluster, whose configuration never changes.
const managementFingerprint = "management"

// KubeconfigSecret returns the Secret, and the entry in it, with which the cluster is reached.
func KubeconfigSecret(cd *v1alpha1.ClusterDeployment) (secret Key, entry string) {
	secret, entry = Key{Namespace: cd.Namespace, Name: cd.Spec.Kubeconfig.SecretName}, cd.Spec.Kubeconfig.Key
	if secret.Name == "" {
		secret.Name = cd.Name + DefaultSecretSuffix
	}
	if entry == "" {
		entry = DefaultSecretKey
	}
	return secret, entry
}

// kubeconfigOfDeployment is the default of Config.Kubeconfig.
func kubeconfigOfDeployment(deployment any) (secret Key, entry string) {
	if cd, ok := deployment.(*v1alpha1.ClusterDeployment); ok {
		return KubeconfigSecret(cd)
	}
	return Key{}, ""
}

// settings are how a cluster is reached.
type settings struct {
	config *rest.Config
	// fingerprint is another one for every other kubeconfig.
	fingerprint string
}

// lookupError says why there are no settings.
type lookupError struct {
	state State
	err   error
}

func (e *lookupError) Error() string { return e.err.Error() }

func missing(state State, format string, args ...any) error {
	return &lookupError{state: state, err: fmt.Errorf(format, args...)}
}

// reference names the entry that holds the kubeconfig of a cluster.
type reference struct {
	secret Key
	entry  string
}

func (r reference) String() string { return fmt.Sprintf("Secret %s, key %q", r.secret, r.entry) }

// refer returns where the kubeconfig of a cluster is.
func (c *Clusters) refer(key Key) (reference, error) {
	obj, exists, err := c.config.Deployments.Get(key)
	if err != nil {
		return reference{}, missing(ClusterMissing, "ClusterDeployment %s can't be read: %w", key, err)
	}
	where := c.referenceOf(obj)
	if !exists || where == (reference{}) {
		return reference{}, missing(ClusterMissing, "there is no ClusterDeployment %s: create it, or delete what is meant for it", key)
	}
	return where, nil
}

// referenceOf returns where the kubeconfig of an object is, zero for nowhere.
func (c *Clusters) referenceOf(deployment any) reference {
	if deployment == nil {
		return reference{}
	}
	secret, entry := c.config.Kubeconfig(deployment)
	if secret.Name == "" {
		return reference{}
	}
	return reference{secret: secret, entry: entry}
}

// read returns the kubeconfig as it stands in its Secret.
func (c *Clusters) read(r reference) ([]byte, error) {
	obj, exists, err := c.config.Secrets.Get(r.secret)
	if err != nil {
		return nil, missing(SecretMissing, "Secret %s can't be read", r.secret)
	}
	secret, ok := obj.(*corev1.Secret)
	if !exists || !ok {
		return nil, missing(SecretMissing,
			"there is no Secret %s with a kubeconfig: create it, or give it the labels by which the operator selects such Secrets", r.secret)
	}
	data := secret.Data[r.entry]
	if len(data) == 0 {
		return nil, missing(SecretMissing, "Secret %s has nothing under the key %q: put the kubeconfig there, or name its key in spec.kubeconfig.key", r.secret, r.entry)
	}
	if c.config.Rewrite != nil {
		data = c.config.Rewrite(secret, data)
	}
	return data, nil
}

// lookup finds out how a cluster is reached. Without another fingerprint than the one that is known the kubeconfig is not
// read again. The error is a *lookupError.
func (c *Clusters) lookup(key Key, r reference, known string) (*settings, error) {
	if key == (Key{}) {
		return &settings{config: c.config.Management, fingerprint: managementFingerprint}, nil
	}
	data, err := c.read(r)
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256(data)
	fingerprint := hex.EncodeToString(hash[:])
	if fingerprint == known {
		return &settings{fingerprint: fingerprint}, nil
	}
	config, err := parseKubeconfig(data, c.config.MaxKubeconfig)
	if err != nil {
		return nil, missing(KubeconfigInvalid, "%s: %w", r, err)
	}
	return &settings{config: config, fingerprint: fingerprint}, nil
}

// Listening to what may change a kubeconfig.

// deploymentChanged is told of the ClusterDeployments.
func (c *Clusters) deploymentChanged(e informer.Event) {
	if e.Type == informer.Updated && c.referenceOf(e.Old) == c.referenceOf(e.Object) {
		return
	}
	c.mu.Lock()
	cluster := c.active[e.Key]
	c.mu.Unlock()
	if cluster != nil {
		cluster.reconsider()
	}
}

// secretChanged is told of the Secrets.
func (c *Clusters) secretChanged(e informer.Event) {
	for _, cluster := range c.all() {
		if cluster.refersTo(e.Key) {
			cluster.reconsider()
		}
	}
}
