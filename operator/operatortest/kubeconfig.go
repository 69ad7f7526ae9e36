package operatortest

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	// contextName names the cluster, the user and the context in a kubeconfig.
	contextName = "operatortest"
	// originExtension of a cluster in a kubeconfig holds an origin.
	originExtension = "operatortest.operatorkit.io"
)

// origin tells a process that was given only a kubeconfig file which control
// plane it belongs to.
type origin struct {
	DataDir string `json:"dataDir"`
}

// writeKubeconfig writes a file with everything a client needs, the certificate
// of the authority and the token, if any, included: it can be copied.
func writeKubeconfig(file, host, dataDir string, caPEM []byte, token string) error {
	extension, err := json.Marshal(origin{DataDir: dataDir})
	if err != nil {
		return fmt.Errorf("encode the origin of kubeconfig %s: %w", file, err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[contextName] = &clientcmdapi.Cluster{
		Server:                   host,
		CertificateAuthorityData: caPEM,
		Extensions: map[string]runtime.Object{
			originExtension: &runtime.Unknown{Raw: extension, ContentType: runtime.ContentTypeJSON},
		},
	}
	config.AuthInfos[contextName] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[contextName] = &clientcmdapi.Context{Cluster: contextName, AuthInfo: contextName}
	config.CurrentContext = contextName
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		return fmt.Errorf("write kubeconfig %s: %w", file, err)
	}
	return nil
}

// loadKubeconfig reads a kubeconfig file, ours or any other.
func loadKubeconfig(file string) (*rest.Config, origin, error) {
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		return nil, origin{}, fmt.Errorf("load kubeconfig %s: %w", file, err)
	}
	restConfig, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	if err != nil {
		return nil, origin{}, fmt.Errorf("use kubeconfig %s: %w", file, err)
	}
	// The server limits what it takes; a limit in the client would only make
	// tests wait.
	restConfig.QPS = -1

	var from origin
	current, ok := config.Contexts[config.CurrentContext]
	if !ok {
		return restConfig, from, nil
	}
	cluster, ok := config.Clusters[current.Cluster]
	if !ok {
		return restConfig, from, nil
	}
	if extension, ok := cluster.Extensions[originExtension].(*runtime.Unknown); ok {
		if err := json.Unmarshal(extension.Raw, &from); err != nil {
			return nil, from, fmt.Errorf("read the origin of kubeconfig %s: %w", file, err)
		}
	}
	return restConfig, from, nil
}
