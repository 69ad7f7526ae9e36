package reach

import (
	"maps"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// LocalServers is a source of Secrets in which the kubeconfigs of those that carry v1alpha1.LocalServerAnnotation have the
// address that it says. A kubeconfig or an address that can't be read stays as it is: who uses it says what is wrong with it.
func LocalServers(secrets informer.Source) informer.Source {
	return &mapped{Source: secrets, name: secrets.Name() + " with local servers", convert: func(obj any) (any, bool) {
		secret, ok := obj.(*corev1.Secret)
		if !ok {
			return obj, obj != nil
		}
		server := secret.Annotations[v1alpha1.LocalServerAnnotation]
		if server == "" {
			return secret, true
		}
		changed := *secret // objects of events are shared: what is changed is copied
		changed.Data = maps.Clone(secret.Data)
		for key, kubeconfig := range changed.Data {
			changed.Data[key] = withServer(kubeconfig, server)
		}
		return &changed, true
	}}
}

// withServer puts another address of the server into a kubeconfig. The certificate is still checked for the name that the
// server goes by on its own network.
func withServer(kubeconfig []byte, server string) []byte {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil || config.Contexts[config.CurrentContext] == nil {
		return kubeconfig
	}
	cluster := config.Clusters[config.Contexts[config.CurrentContext].Cluster]
	if cluster == nil {
		return kubeconfig
	}
	if former, err := url.Parse(cluster.Server); err == nil && cluster.TLSServerName == "" {
		cluster.TLSServerName = former.Hostname()
	}
	cluster.Server = server
	changed, err := clientcmd.Write(*config)
	if err != nil {
		return kubeconfig
	}
	return changed
}
