package granter

import (
	"cmp"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/internal/redact"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// endpoint is how an API server is reached, without credentials.
type endpoint struct {
	cluster clientcmdapi.Cluster
	// local is the address for those who are not on the platform's network.
	local string
}

// endpointOf reads it from the kubeconfig by which the platform manages a cluster. What the kubeconfig holds beside that does
// not get into an error.
func (g *granter) endpointOf(cluster *v1alpha1.Cluster) (endpoint, error) {
	key, entry := managedBy(cluster)
	obj, _, err := g.kubeconfigs.Get(key)
	secret, ok := obj.(*corev1.Secret)
	var found *clientcmdapi.Cluster
	switch {
	case err != nil:
		err = errors.New("it can't be read")
	case !ok:
		err = errors.New("there is none")
	default:
		found, _, err = read(secret.Data[entry])
	}
	if err != nil {
		return endpoint{}, redact.Wrap(fmt.Errorf("kubeconfig in Secret %s: %w", key, err), "read how Cluster %s is reached", cluster.Name)
	}
	return endpoint{cluster: bare(found), local: secret.Annotations[v1alpha1.LocalServerAnnotation]}, nil
}

// bare is how a cluster of a kubeconfig is reached.
func bare(c *clientcmdapi.Cluster) clientcmdapi.Cluster {
	return clientcmdapi.Cluster{
		Server: c.Server, TLSServerName: c.TLSServerName, InsecureSkipTLSVerify: c.InsecureSkipTLSVerify,
		CertificateAuthorityData: c.CertificateAuthorityData, ProxyURL: c.ProxyURL, DisableCompression: c.DisableCompression,
	}
}

// managedBy returns where the kubeconfig is by which the platform manages a Cluster.
func managedBy(cluster any) (secret informer.Key, entry string) {
	c, ok := cluster.(*v1alpha1.Cluster)
	if !ok {
		return informer.Key{}, ""
	}
	return informer.Key{Namespace: c.Namespace, Name: c.Spec.Kubeconfig.SecretName}, cmp.Or(c.Spec.Kubeconfig.Key, v1alpha1.KubeconfigKey)
}

var errNoKubeconfig = errors.New("it is no kubeconfig with a current context")

// read returns cluster and user of the current context of a kubeconfig; the user may be nil.
func read(kubeconfig []byte) (*clientcmdapi.Cluster, *clientcmdapi.AuthInfo, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil { // which may quote what it can't read
		return nil, nil, errNoKubeconfig
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil || config.Clusters[current.Cluster] == nil {
		return nil, nil, errNoKubeconfig
	}
	return config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo], nil
}

// render writes a kubeconfig.
func (e endpoint) render(clusterName, account, token string) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters[clusterName] = &e.cluster
	config.AuthInfos[account] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[clusterName] = &clientcmdapi.Context{Cluster: clusterName, AuthInfo: account}
	config.CurrentContext = clusterName
	return clientcmd.Write(*config)
}

// issued reads a kubeconfig that render wrote: the token, and whether it leads to the endpoint.
func (e endpoint) issued(kubeconfig []byte) (token string, leads bool) {
	cluster, user, err := read(kubeconfig)
	if err != nil || user == nil {
		return "", false
	}
	return user.Token, equality.Semantic.DeepEqual(bare(cluster), e.cluster)
}
