package statemanagers

import (
	"context"
	"sync"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// kubeconfigs is a source of the Secrets that ClusterDeployments name, and of no other ones: of all others the operator knows
// the metadata only. A Secret is read when one is named, and whenever its metadata tell of a change.
type kubeconfigs struct {
	*informer.Hub
	feed              *informer.Feed
	clusters, secrets *informer.Kubernetes
	reader            client.Reader
	logger            micrologger.Logger

	mu sync.Mutex
	// named are the Secrets that each ClusterDeployment names.
	named map[informer.Key]informer.Key
	// users is how many ClusterDeployments name a Secret.
	users map[informer.Key]int
}

var _ informer.Source = (*kubeconfigs)(nil)

// newKubeconfigs returns the source; clusters and secrets are the sources that it goes by, and reader reads past them.
func newKubeconfigs(clusters, secrets *informer.Kubernetes, reader client.Reader, logger micrologger.Logger) *kubeconfigs {
	hub, feed := informer.NewHub(informer.HubConfig{Name: "kubeconfigs"})
	return &kubeconfigs{Hub: hub, feed: feed, clusters: clusters, secrets: secrets, reader: reader, logger: logger}
}

// Run implements informer.Source.
func (k *kubeconfigs) Run(ctx context.Context) error {
	k.feed.Run(ctx, k.work)
	return nil
}

// work reads Secrets until the context ends.
func (k *kubeconfigs) work(ctx context.Context) {
	k.mu.Lock()
	k.named, k.users = map[informer.Key]informer.Key{}, map[informer.Key]int{}
	k.mu.Unlock()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[informer.Key]())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer queue.ShutDown()
	for _, source := range []*informer.Kubernetes{k.clusters, k.secrets} {
		wg.Go(func() { _ = source.Run(ctx) }) // joins those who run it already; its end is that of ctx
	}
	defer k.clusters.Subscribe(func(e informer.Event) {
		for _, secret := range k.name(e) {
			queue.Add(secret)
		}
	})()
	defer k.secrets.Subscribe(func(e informer.Event) {
		if k.wanted(e.Key) {
			queue.Add(e.Key)
		}
	})()
	if k.clusters.WaitForSync(ctx) != nil || k.secrets.WaitForSync(ctx) != nil || !k.first(ctx, queue) {
		return
	}
	wg.Go(func() {
		<-ctx.Done()
		queue.ShutDown()
	})
	for {
		secret, done := queue.Get()
		if done {
			return
		}
		k.again(ctx, queue, secret)
		queue.Done(secret)
	}
}

// first makes what is there the first listing. It tells whether that was possible before the context ended.
func (k *kubeconfigs) first(ctx context.Context, queue workqueue.TypedRateLimitingInterface[informer.Key]) bool {
	var items []informer.Item
	k.mu.Lock()
	secrets := make([]informer.Key, 0, len(k.users))
	for secret := range k.users {
		secrets = append(secrets, secret)
	}
	k.mu.Unlock()
	for _, key := range secrets {
		secret, err := k.read(ctx, key)
		switch {
		case ctx.Err() != nil:
			return false
		case err != nil:
			queue.AddRateLimited(key)
		case secret != nil:
			items = append(items, item(secret))
		}
	}
	k.feed.Replace("", items)
	return true
}

// again reads a Secret once more, or forgets it.
func (k *kubeconfigs) again(ctx context.Context, queue workqueue.TypedRateLimitingInterface[informer.Key], key informer.Key) {
	var secret *corev1.Secret
	if k.wanted(key) {
		var err error
		if secret, err = k.read(ctx, key); err != nil {
			queue.AddRateLimited(key)
			return
		}
	}
	queue.Forget(key)
	if secret == nil {
		k.feed.Delete(key, nil)
		return
	}
	k.feed.Set(item(secret))
}

// read returns a Secret, nil if there is none.
func (k *kubeconfigs) read(ctx context.Context, key informer.Key) (*corev1.Secret, error) {
	if _, exists, err := k.secrets.Get(key); err == nil && !exists {
		return nil, nil
	}
	secret := &corev1.Secret{}
	err := k.reader.Get(ctx, key, secret)
	switch {
	case err == nil:
		k.feed.Contact("")
		return secret, nil
	case apierrors.IsNotFound(err):
		return nil, nil
	}
	if ctx.Err() == nil {
		k.feed.Fail("", err)
		k.logger.LogCtx(ctx, "level", "warning", "message", "a Secret with a kubeconfig can't be read", "secret", key.String(), "error", err.Error())
	}
	return nil, err
}

func item(secret *corev1.Secret) informer.Item {
	return informer.Item{Key: client.ObjectKeyFromObject(secret), Object: secret, Version: secret.ResourceVersion}
}

// name notes which Secret a ClusterDeployment names, and returns those for which that has changed something.
func (k *kubeconfigs) name(e informer.Event) []informer.Key {
	k.mu.Lock()
	defer k.mu.Unlock()
	before, had := k.named[e.Key]
	var now informer.Key
	if e.Type != informer.Deleted {
		now, _ = target.KubeconfigSecret(e.Object.(*v1alpha1.ClusterDeployment))
		if had && now == before {
			return nil
		}
	}
	var changed []informer.Key
	if had {
		delete(k.named, e.Key)
		if k.users[before]--; k.users[before] == 0 {
			delete(k.users, before)
			changed = append(changed, before)
		}
	}
	if e.Type != informer.Deleted {
		k.named[e.Key] = now
		if k.users[now]++; k.users[now] == 1 {
			changed = append(changed, now)
		}
	}
	return changed
}

// wanted tells whether a ClusterDeployment names a Secret.
func (k *kubeconfigs) wanted(secret informer.Key) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.users[secret] > 0
}
