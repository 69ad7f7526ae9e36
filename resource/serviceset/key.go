package serviceset

import (
	"crypto/sha256"
	"encoding/hex"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// managementPrefix begins the name of a ServiceSet of the management cluster.
const managementPrefix = "management-"

// ObjectKey returns the namespace and the name of the ServiceSet of a cluster, of a MultiClusterService, or of both:
//
//   - of a cluster alone: the cluster's own;
//   - of a MultiClusterService on a cluster: the cluster's namespace, and its name with a dot and a hash after it;
//   - of a MultiClusterService on the management cluster, which has no ClusterDeployment: the system namespace, and
//     "management-" with a hash after it.
//
// No two of them meet: a ClusterDeployment's name has no dot, and is not "management-" with a hash, which its definition
// sees to. Without a cluster and a MultiClusterService the key is empty.
func ObjectKey(systemNamespace string, cd *v1alpha1.ClusterDeployment, mcs *v1alpha1.MultiClusterService) client.ObjectKey {
	switch {
	case cd != nil && mcs != nil:
		return client.ObjectKey{Namespace: cd.Namespace, Name: cd.Name + "." + nameHash(mcs.Name)}
	case cd != nil:
		return client.ObjectKeyFromObject(cd)
	case mcs != nil:
		return client.ObjectKey{Namespace: systemNamespace, Name: managementPrefix + nameHash(mcs.Name)}
	}
	return client.ObjectKey{}
}

func nameHash(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:8])
}

// ServiceKey returns the key by which a service is known on its cluster. An empty namespace is "default".
func ServiceKey(namespace, name string) client.ObjectKey {
	return v1alpha1.ServiceKey(namespace, name)
}
