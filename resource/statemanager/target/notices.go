package target

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/informer"
)

// NoticesName is the name of the source of notices.
const NoticesName = "target-clusters"

// Occasion is why a user is told something.
type Occasion string

// The occasions.
const (
	// StateChanged says that the state of the cluster is another one: it went away, or is back, or has another kubeconfig.
	StateChanged Occasion = "StateChanged"
	// ObjectChanged says that an object changed that the user watches.
	ObjectChanged Occasion = "ObjectChanged"
	// WatchBegun says that a kind is watched from now on: what happened before may have been missed.
	WatchBegun Occasion = "WatchBegun"
)

// Notice tells a user that it should look at a cluster again. It is an object of [Clusters.Notices], under the key of its
// user: only the newest one of a user is kept, because the user looks at everything anyway. It must not be changed.
type Notice struct {
	// User is who is concerned.
	User Key
	// Cluster is where something happened.
	Cluster Key
	// Occasion is what happened.
	Occasion Occasion
	// State is how the cluster was when it happened.
	State State
	// Kind and Object name what changed, for ObjectChanged; Kind also what is watched, for WatchBegun.
	Kind   schema.GroupVersionKind
	Object Key
}

// Copy implements informer.Copier.
func (n *Notice) Copy() any {
	copied := *n
	return &copied
}

// Users is the map function from a [Notice] to its user.
func Users(_ context.Context, obj any) []Key {
	if n, ok := obj.(*Notice); ok {
		return []Key{n.User}
	}
	return nil
}

// notices is the source of notices. It knows the users, so that nobody is told anything after it has left.
type notices struct {
	*informer.Hub
	feed     *informer.Feed
	clusters *Clusters

	mu sync.Mutex
	// users counts the clusters of each user.
	users map[Key]int
	// count makes the versions of the notices.
	count int
}

var _ informer.Source = (*notices)(nil)

func newNotices(clusters *Clusters) *notices {
	n := &notices{clusters: clusters, users: map[Key]int{}}
	n.Hub, n.feed = informer.NewHub(informer.HubConfig{Name: NoticesName})
	return n
}

// Run implements informer.Source.
func (n *notices) Run(ctx context.Context) error {
	n.feed.Run(ctx, n.clusters.work)
	return nil
}

// Status implements informer.Source. Notices are as fresh as the sources of kubeconfigs; how fresh what is known of a cluster
// is, its Health tells.
func (n *notices) Status() informer.Status {
	status := n.Hub.Status()
	config := n.clusters.config
	deployments, secrets := config.Deployments.Status(), config.Secrets.Status()
	status.LastContact = deployments.LastContact
	if secrets.LastContact.Before(status.LastContact) {
		status.LastContact = secrets.LastContact
	}
	status.LastError = errors.Join(deployments.LastError, secrets.LastError)
	return status
}

// ready marks the source as synced.
func (n *notices) ready() { n.feed.Replace("", nil) }

// joined and left count the clusters of a user.
func (n *notices) joined(user Key) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.users[user]++
}

func (n *notices) left(user Key) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.users[user]--; n.users[user] <= 0 {
		delete(n.users, user)
		n.feed.Delete(user, nil)
	}
}

// tell gives a notice to each of the users that still has a cluster.
func (n *notices) tell(notice Notice, users []Key) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, user := range users {
		if n.users[user] == 0 {
			continue
		}
		n.count++
		own := notice
		own.User = user
		n.feed.Set(informer.Item{Key: user, Object: &own, Version: strconv.Itoa(n.count)})
	}
}
