package target

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer/notfound"
)

// Acting is a cluster for requests that are made as another user, with that user's rights. The user of the kubeconfig needs the right to
// impersonate him. It shares the connections, the rates and the kinds of its cluster, and lives as long.
type Acting struct {
	cluster *Cluster
	client  client.WithWatch
	user    string
}

// As returns the cluster for requests as another user. One that was used lately is not made again.
func (c *Cluster) As(user string) (*Acting, error) {
	if known, ok := c.acting.Get(user); ok {
		return known.(*Acting), nil
	}
	made, err := c.newClient(transport.NewImpersonatingRoundTripper(transport.ImpersonationConfig{UserName: user}, &gate{cluster: c, admit: c.admit}))
	if err != nil {
		return nil, err
	}
	a := &Acting{cluster: c, user: user, client: notfound.CheckedWithWatch(made)}
	c.acting.Add(user, a)
	return a, nil
}

// Client is the Client of the cluster, as the user.
func (a *Acting) Client() client.WithWatch { return a.client }

// RESTConfig is the RESTConfig of the cluster, as the user.
func (a *Acting) RESTConfig() *rest.Config {
	config := a.cluster.RESTConfig()
	config.Impersonate = rest.ImpersonationConfig{UserName: a.user}
	return config
}

// RESTMapper is that of the cluster.
func (a *Acting) RESTMapper() meta.RESTMapper { return a.cluster.RESTMapper() }
