// Package clusters holds a cluster as service providers use it: a name, a configuration, and clients that share their
// connections.
//
//	platform, err := clusters.New("platform", config, scheme)
//	err = platform.Client().Get(ctx, key, secret)          // asks the API server
//	err = mgr.Add(platform.Cluster())                      // starts the cache, for watches
//
// It is promised that making one sends no request and starts no goroutine, that a configuration that can't be used is an error
// of [New] and of nothing later, and that what is handed in is copied.
package clusters
