package story

import (
	"context"
	"fmt"
	"strings"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	release "helm.sh/helm/v4/pkg/release/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch"
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

// install installs a release as people do, with Helm itself.
func (c *cluster) install(ctx context.Context, service v1alpha1.Service, source v1alpha1.HelmChart, config fetch.Config) error {
	helm, err := c.helm(service.Namespace)
	if err != nil {
		return err
	}
	fetcher, err := fetch.New(config)
	if err != nil {
		return err
	}
	chart, err := fetcher.Chart(ctx, source, fetch.Credentials{})
	if err != nil {
		return err
	}
	var values map[string]any
	if err := yaml.Unmarshal([]byte(service.Values), &values); err != nil {
		return fmt.Errorf("the values of %s: %w", service.Name, err)
	}
	install := action.NewInstall(helm)
	install.ReleaseName, install.Namespace, install.WaitStrategy = service.Name, service.Namespace, kube.HookOnlyStrategy
	if _, err := install.RunWithContext(ctx, chart.Chart, values); err != nil {
		return fmt.Errorf("helm install %s on cluster %s: %w", service.Name, c.name, err)
	}
	return nil
}

// docs returns which objects the service docs consists of.
func (c *cluster) docs(ctx context.Context) ([]types.UID, error) {
	var found []types.UID
	for _, obj := range []client.Object{&appsv1.Deployment{}, &corev1.Service{}, &networkingv1.Ingress{}} {
		obj.SetNamespace("web")
		obj.SetName("docs")
		if err := c.get(ctx, obj); err != nil {
			return nil, err
		}
		found = append(found, obj.GetUID())
	}
	return found, nil
}

// get reads an object, whose namespace and name it has.
func (c *cluster) get(ctx context.Context, obj client.Object) error {
	if err := c.client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
		return fmt.Errorf("cluster %s: %w", c.name, err)
	}
	return nil
}
