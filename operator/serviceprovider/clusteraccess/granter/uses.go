package granter

import (
	"sync"

	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// uses are the clusters that requests use, by the request: one each. It is safe for concurrent use.
type uses struct {
	mu        sync.Mutex
	byRequest map[target.Key]target.Key
}

// begin acquires a cluster for a request, which lets go of the one that it used before.
func (u *uses) begin(clusters *target.Clusters, cluster, request target.Key) (*target.Cluster, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if before, ok := u.byRequest[request]; ok && before != cluster {
		clusters.Release(before, request)
	}
	if u.byRequest == nil {
		u.byRequest = map[target.Key]target.Key{}
	}
	u.byRequest[request] = cluster
	return clusters.Acquire(cluster, request)
}

// end lets go of the cluster that a request uses, if it uses one.
func (u *uses) end(clusters *target.Clusters, request target.Key) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if cluster, ok := u.byRequest[request]; ok {
		delete(u.byRequest, request)
		clusters.Release(cluster, request)
	}
}
