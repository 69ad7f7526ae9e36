package story

import (
	"context"
	"fmt"
	"strings"

	"helm.sh/helm/v4/pkg/action"
	release "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// cluster is one with services, as its own API and Helm show it.
type cluster struct {
	name       string
	kubeconfig string
	client     client.Client
}

func newCluster(name string, instance *operatortest.Instance) (*cluster, error) {
	c, err := client.New(instance.RESTConfig(), client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("make a client of cluster %s: %w", name, err)
	}
	return &cluster{name: name, kubeconfig: instance.Kubeconfig(), client: c}, nil
}

func byName(a, b *cluster) int { return strings.Compare(a.name, b.name) }

// helm returns what Helm's commands are made with, for a namespace or for all of them.
func (c *cluster) helm(namespace string) (*action.Configuration, error) {
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Namespace = &c.kubeconfig, &namespace
	config := action.NewConfiguration()
	if err := config.Init(flags, namespace, "secret"); err != nil {
		return nil, fmt.Errorf("connect Helm to cluster %s: %w", c.name, err)
	}
	return config, nil
}

// releases returns the newest revision of each release by its name, as "helm list -A -a" does.
func (c *cluster) releases() (map[string]*release.Release, error) {
	config, err := c.helm("")
	if err != nil {
		return nil, err
	}
	list := action.NewList(config)
	list.AllNamespaces, list.StateMask = true, action.ListAll
	found, err := list.Run()
	if err != nil {
		return nil, fmt.Errorf("helm list on cluster %s: %w", c.name, err)
	}
	releases := map[string]*release.Release{}
	for _, r := range found {
		releases[r.(*release.Release).Name] = r.(*release.Release)
	}
	return releases, nil
}

// history returns the revisions of a release, the oldest first, each as its chart's version and its status.
func (c *cluster) history(namespace, name string) ([]string, error) {
	config, err := c.helm(namespace)
	if err != nil {
		return nil, err
	}
	found, err := action.NewHistory(config).Run(name)
	if err != nil {
		return nil, fmt.Errorf("helm history of %s on cluster %s: %w", name, c.name, err)
	}
	revisions := make([]string, len(found))
	for i, r := range found {
		r := r.(*release.Release)
		revisions[i] = r.Chart.Metadata.Version + " " + r.Info.Status.String()
	}
	return revisions, nil
}

// get reads an object, whose namespace and name it has.
func (c *cluster) get(ctx context.Context, obj client.Object) error {
	if err := c.client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
		return fmt.Errorf("cluster %s: %w", c.name, err)
	}
	return nil
}
