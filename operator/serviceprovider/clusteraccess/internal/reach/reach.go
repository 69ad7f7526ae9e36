// Package reach is what those share who reach clusters by kubeconfigs: who grants access, and who was granted it.
package reach

import (
	"net/url"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// GrantedLabels are on everything that the granter makes, on the platform and in clusters.
func GrantedLabels() labels.Set {
	return labels.Set{"app.kubernetes.io/managed-by": "operatorkit-granter"}
}

// Rewrite returns a target.Config.Rewrite by which kubeconfigs in Secrets that carry v1alpha1.LocalServerAnnotation have the address that it
// says, if local; nil otherwise. A kubeconfig or an address that can't be read stays as it is: who uses it says what is wrong with it.
func Rewrite(local bool) func(secret *corev1.Secret, kubeconfig []byte) []byte {
	if !local {
		return nil
	}
	return func(secret *corev1.Secret, kubeconfig []byte) []byte {
		if server := secret.Annotations[v1alpha1.LocalServerAnnotation]; server != "" {
			return withServer(kubeconfig, server)
		}
		return kubeconfig
	}
}

// withServer puts another address of the server into a kubeconfig. The certificate is still checked for the name that the
// server goes by on its own network.
func withServer(kubeconfig []byte, server string) []byte {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil || config.Contexts[config.CurrentContext] == nil {
		return kubeconfig
	}
	current := config.Contexts[config.CurrentContext]
	cluster := config.Clusters[current.Cluster]
	if cluster == nil {
		return kubeconfig
	}
	if former, err := url.Parse(cluster.Server); err == nil && cluster.TLSServerName == "" {
		cluster.TLSServerName = former.Hostname()
	}
	cluster.Server = server
	// It is named after the annotation, so that what is wrong with the address is blamed on that.
	config.Clusters[v1alpha1.LocalServerAnnotation], current.Cluster = cluster, v1alpha1.LocalServerAnnotation
	changed, err := clientcmd.Write(*config)
	if err != nil {
		return kubeconfig
	}
	return changed
}
