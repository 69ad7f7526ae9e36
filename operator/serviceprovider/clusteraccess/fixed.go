package clusteraccess

import (
	"cmp"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/faults"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess/internal/reach"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusters"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// Fixed is a cluster that is not asked for, because the provider has rights there anyway: the onboarding cluster, or the one that it
// runs in. There is no AccessRequest of it, nothing is granted, and nothing is taken away in the end; but for that it is a cluster of
// an object as others are. Exactly one of Secret and Cluster is set.
type Fixed struct {
	// Secret is a Secret of the platform cluster with a kubeconfig, and Key the entry. What is put there is used by the next request of
	// the same clients. A kubeconfig must hold what it needs: one that names programs or files is refused. It takes the right to get,
	// list and watch that Secret. Default of Key: v1alpha1.KubeconfigKey ("kubeconfig").
	Secret client.ObjectKey
	Key    string
	// Cluster is a cluster that is there already: one of clusters.New, or that of clusters.InCluster.
	Cluster *clusters.Cluster
}

func (f *Fixed) validate(wrong *faults.List, of string) {
	wrong.If((f.Secret.Name != "") == (f.Cluster != nil), "%s: set exactly one of Secret and Cluster", of)
	wrong.If(f.Secret.Name != "" && f.Secret.Namespace == "", "%s: Secret must have a namespace", of)
	wrong.If(f.Secret.Name == "" && f.Key != "", "%s: Key is the entry of a Secret: set Secret too", of)
}

// fixed is a Fixed that is in use.
type fixed struct {
	Fixed
	id string
	// targets reach the cluster by its Secret, under key. They are nil without one.
	targets *target.Clusters
	key     target.Key

	mu sync.Mutex
	// last is what was handed out last.
	last handed
}

// openFixed prepares a cluster that is not asked for. watching reads the platform cluster.
func openFixed(id string, f Fixed, config *Config, watching client.WithWatch) (*fixed, error) {
	open := &fixed{Fixed: f, id: id, key: target.Key{Namespace: f.Secret.Namespace, Name: id}}
	if f.Cluster != nil {
		return open, nil
	}
	secrets, err := informer.NewKubernetes(informer.KubernetesConfig{
		Client: watching, Object: &corev1.Secret{}, Name: "kubeconfig of the " + id + " cluster", Namespaces: []string{f.Secret.Namespace},
		FieldSelector: fields.OneTermEqualSelector("metadata.name", f.Secret.Name), Logger: config.Logger,
	})
	if err != nil {
		return nil, err
	}
	place := informer.NewPush("place of cluster " + open.key.String())
	if err := place.Update(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: open.key.Namespace, Name: open.key.Name}}); err != nil {
		return nil, err
	}
	open.targets, err = target.New(target.Config{
		Deployments: place, Kubeconfig: func(any) (target.Key, string) { return f.Secret, cmp.Or(f.Key, v1alpha1.KubeconfigKey) },
		Secrets: secrets, Rewrite: reach.Rewrite(config.LocalServers), Management: config.Platform.RESTConfig(), Scheme: config.Scheme, Logger: config.Logger,
		WrapTransport: config.WrapTransport, IdleTimeout: config.IdleTimeout, QPS: -1,
	})
	return open, err
}

// cluster returns the cluster for an object.
func (f *fixed) cluster(request reconcile.Request, config *Config) (*clusters.Cluster, error) {
	if f.targets == nil {
		return f.Cluster, nil
	}
	on, err := f.targets.Acquire(f.key, request.NamespacedName)
	if err == nil {
		err = on.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("reach the %s cluster by the kubeconfig in Secret %s: %w", f.id, f.Secret, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last.by(on, f.id, config.Scheme)
}

func (f *fixed) release(request reconcile.Request) {
	if f.targets != nil {
		f.targets.Release(f.key, request.NamespacedName)
	}
}

// FixedCluster tells whether the cluster with that id is not asked for, and in which Secret of the platform cluster its kubeconfig is,
// if it is in one.
func (c *Clusters[D]) FixedCluster(id string) (secret client.ObjectKey, isFixed bool) {
	f, isFixed := c.fixed[id]
	if isFixed {
		secret = f.Secret
	}
	return secret, isFixed
}

// notices are the sources that tell of clusters that stop or begin to answer.
func (c *Clusters[D]) notices() []informer.Source {
	all := []informer.Source{c.targets.Notices()}
	for _, f := range c.fixed {
		if f.targets != nil {
			all = append(all, f.targets.Notices())
		}
	}
	return all
}
