// Package target reaches the clusters that services are for: those whose kubeconfigs are in Secrets of the management
// cluster, and the management cluster itself.
//
//	clusters, err := target.New(target.Config{
//		Deployments: deployments, // an informer.Source of ClusterDeployments
//		Secrets:     secrets,     // an informer.Source of Secrets, only of those with kubeconfigs
//		Management:  restConfig, Logger: logger, Registerer: registry,
//		Owners:      func(_ target.Key, obj client.Object) []target.Key { … }, // which ServiceSets an object on a cluster belongs to
//	})
//	sets, err := framework.New(framework.Config{
//		Source:  serviceSets,
//		Watches: []framework.Watch{{Source: clusters.Notices(), Map: target.Users}}, …
//	})
//
// In a reconciliation of a ServiceSet, with key as its key:
//
//	cluster, err := clusters.Acquire(deployment, key)     // again each time; the zero Key is the management cluster
//	meta.SetStatusCondition(&status.Conditions, cluster.Condition())
//	if cluster.Err() != nil {
//		return nil                                        // a notice comes when it is back
//	}
//	err = cluster.Watch(key, target.Kind{GroupVersionKind: deploymentKind, Selector: ours})
//	err = cluster.Client().Patch(ctx, obj, …)
//	…
//	clusters.Release(deployment, key)                     // when the ServiceSet is gone
//
// # Sharing
//
// All users of a cluster share one [Cluster], with one pool of connections, one rate limit, one RESTMapper, and one watch for
// each kind and selector. It begins with the first user. When the last one has released it, it is kept for
// Config.IdleTimeout (5 minutes); then its connections, watches and goroutines end. Clusters share nothing with each other:
// a slow or dead one delays nobody but its own users, and those not for long.
//
// # States
//
// A cluster has one [State], which is also the reason of its condition Reachable:
//
//	                     probe: fine                       probe: no answer, 5xx, not Kubernetes
//	┌────────────┐ ─────────────────────▶ ┌───────────┐ ─────────────────────────▶ ┌─────────────┐
//	│ Connecting │                        │ Connected │ ◀───────────────────────── │ Unreachable │
//	└────────────┘ ─── the same ────────▶ └───────────┘        probe: fine         └─────────────┘
//	      ▲            from here               │ ▲                                       │ ▲
//	      │                         probe: 401 │ │ probe: fine                probe: 401 │ │ probe: no answer
//	      │                                    ▼ │                                       ▼ │
//	      │ another kubeconfig,             ┌───────────────────────────────────────────────────┐
//	      │ from any state                  │                CredentialRefused                  │
//	      │                                 └───────────────────────────────────────────────────┘
//	┌─────────────────────────────────────────────────────┐
//	│ ClusterMissing · SecretMissing · KubeconfigInvalid  │ ◀── no kubeconfig that can be used, from any state
//	└─────────────────────────────────────────────────────┘
//
// While it is Connecting or Connected, requests are sent. In the other states they fail at once with an [UnreachableError],
// and those under way are ended. Nothing but a probe (GET /version) moves a cluster between the states that a kubeconfig can
// have. A probe comes
//
//   - at once for a new kubeconfig;
//   - at once, but not more often than every Config.MinRetry (1 s), when a request was not answered, was answered by 401, 502,
//     503 or 504, or broke off: whether the cluster or only this request is at fault, the probe tells;
//   - when nothing was answered for Config.ProbeInterval (1 minute);
//   - in Unreachable and CredentialRefused after MinRetry, and then after twice the pause each time, up to Config.MaxRetry
//     (1 minute), ±20 %. It is the only request then: the half-open state of a circuit breaker is one probe.
//
// A change of the state gives a [Notice] to every user of the cluster, so that what waits goes on at once.
//
// # Kubeconfigs
//
// A kubeconfig is not trusted. What it says is used, of its current context only: an https server, a CA or none, a token, a
// name and password or a client certificate, whom to act as, a proxy. It is refused, in the state KubeconfigInvalid and with
// an error that says what to do, when it names a program (exec), a plugin (auth-provider) or a file, or is larger than
// Config.MaxKubeconfig. Redirects to other servers are refused, and answers have a largest size. It is not hidden from the
// author of a kubeconfig which addresses the operator can reach; a network policy is the means against that.
//
// Another kubeconfig is noticed through the source of Secrets. New requests use it, whatever client they come from; requests
// under way may finish with the old one, within Config.RequestTimeout; watches are moved, and announce what is different.
// When the new one can't be used, or the Secret is gone, nothing is sent any more: the old one may be the very thing that
// was taken back.
//
// # Other libraries
//
// [Cluster.RESTConfig] is for clients that leave the sending to its transport, as those of client-go do. [Cluster.DirectConfig] has
// the cluster's address and its certificates, for what upgrades connections (exec, attach, port-forward) and for libraries that look
// at these fields. What is made of either goes on with another kubeconfig.
//
// # Watches
//
// [Cluster.Watch] follows kinds on a cluster, with metadata only unless asked for more, and [Clusters.Notices] is the one
// source through which everything reaches the frameworks. Whom an object concerns, Config.Owners says; only those are told
// who watch its kind on its cluster. Watches wait while their cluster does not answer, without trying on their own, and for
// kinds that their cluster does not have yet.
//
// # Metrics
//
// All names begin with operatorkit_target_: clusters, watches, requests_total, probes_total, state_changes_total,
// rate_limiter_wait_seconds. No label holds the name of a cluster.
//
// # Concurrency and ownership
//
// Everything is safe for concurrent use. Handlers that subscribe to the notices must not call this package. What a method
// returns belongs to the caller, but for a [Notice] in an event, which is shared.
package target
