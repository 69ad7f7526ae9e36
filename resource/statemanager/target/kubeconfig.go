package target

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/operatorkit/operatorkit/internal/cut"
)

// parseKubeconfig reads a kubeconfig that anybody may have written. It takes what is in the text itself, of the current
// context only, and refuses what would read files or run programs on this side. The errors hold nothing of the text but
// names, addresses, and the paths that are refused.
func parseKubeconfig(data []byte, maxBytes int) (*rest.Config, error) {
	if len(data) > maxBytes {
		return nil, fmt.Errorf("the kubeconfig has %d bytes, more than the %d that are read: leave out the contexts that are not used", len(data), maxBytes)
	}
	config, err := clientcmd.Load(data)
	if err != nil {
		return nil, errors.New("this is not a kubeconfig: it must be YAML or JSON of apiVersion v1 and kind Config")
	}
	current, ok := config.Contexts[config.CurrentContext]
	if !ok || current == nil {
		return nil, fmt.Errorf("current-context is %s, of which there is no context: set it to one of the contexts", quote(config.CurrentContext))
	}
	cluster, ok := config.Clusters[current.Cluster]
	if !ok || cluster == nil {
		return nil, fmt.Errorf("the context names the cluster %s, which the kubeconfig does not have", quote(current.Cluster))
	}
	user := &clientcmdapi.AuthInfo{}
	if current.AuthInfo != "" {
		if user = config.AuthInfos[current.AuthInfo]; user == nil {
			return nil, fmt.Errorf("the context names the user %s, which the kubeconfig does not have", quote(current.AuthInfo))
		}
	}
	if err := errors.Join(refuseCluster(current.Cluster, cluster), refuseUser(current.AuthInfo, user)); err != nil {
		return nil, err
	}
	return restConfig(cluster, user)
}

// refuseCluster returns why a cluster must not be used, nil if it may.
func refuseCluster(name string, cluster *clientcmdapi.Cluster) error {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("cluster %s of the kubeconfig: "+format, append([]any{quote(name)}, args...)...))
	}
	if cluster.CertificateAuthority != "" {
		fault("the file %s (certificate-authority) is not read: put the certificates into certificate-authority-data", quote(cluster.CertificateAuthority))
	}
	server, err := url.Parse(cluster.Server)
	switch {
	case err != nil || server.Host == "" || server.Scheme != "https":
		fault("server must be an https:// address")
	case server.User != nil || server.RawQuery != "" || server.Fragment != "":
		fault("server must be an address without user, query and fragment")
	}
	if cluster.ProxyURL != "" {
		proxy, err := url.Parse(cluster.ProxyURL)
		if err != nil || proxy.Host == "" || !slices.Contains([]string{"http", "https", "socks5"}, proxy.Scheme) {
			fault("proxy-url must be an http://, https:// or socks5:// address")
		}
	}
	return errors.Join(faults...)
}

// refuseUser returns why a user must not be used, nil if it may.
func refuseUser(name string, user *clientcmdapi.AuthInfo) error {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("user %s of the kubeconfig: "+format, append([]any{quote(name)}, args...)...))
	}
	if user.Exec != nil {
		fault("the program %s (exec) is not run: use a token or a client certificate", quote(user.Exec.Command))
	}
	if user.AuthProvider != nil {
		fault("the plugin %s (auth-provider) is not used: use a token or a client certificate", quote(user.AuthProvider.Name))
	}
	for _, file := range []struct{ field, path, mend string }{
		{"tokenFile", user.TokenFile, "put the token into token"},
		{"client-certificate", user.ClientCertificate, "put the certificate into client-certificate-data"},
		{"client-key", user.ClientKey, "put the key into client-key-data"},
	} {
		if file.path != "" {
			fault("the file %s (%s) is not read: %s", quote(file.path), file.field, file.mend)
		}
	}
	if strings.ContainsFunc(user.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		fault("token holds characters that a token can't have, such as a line break")
	}
	return errors.Join(faults...)
}

// restConfig takes the fields that are known to be harmless, one by one.
func restConfig(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) (*rest.Config, error) {
	config := &rest.Config{
		Host:               cluster.Server,
		DisableCompression: cluster.DisableCompression,
		BearerToken:        user.Token,
		Username:           user.Username,
		Password:           user.Password,
		Impersonate: rest.ImpersonationConfig{
			UserName: user.Impersonate, UID: user.ImpersonateUID, Groups: user.ImpersonateGroups, Extra: user.ImpersonateUserExtra,
		},
		TLSClientConfig: rest.TLSClientConfig{
			Insecure:   cluster.InsecureSkipTLSVerify,
			ServerName: cluster.TLSServerName,
			CAData:     cluster.CertificateAuthorityData,
			CertData:   user.ClientCertificateData,
			KeyData:    user.ClientKeyData,
		},
	}
	if cluster.ProxyURL != "" {
		proxy, err := url.Parse(cluster.ProxyURL)
		if err != nil {
			return nil, errors.New("proxy-url is no address")
		}
		config.Proxy = http.ProxyURL(proxy)
	}
	return config, nil
}

// quote shows a short text that a stranger wrote.
func quote(text string) string { return fmt.Sprintf("%q", cut.Text(text, maxMessage)) }
