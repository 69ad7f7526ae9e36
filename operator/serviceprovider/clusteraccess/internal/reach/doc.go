// Package reach lets package target reach clusters that are no ClusterDeployments: any object that names a Secret with a
// kubeconfig will do. What target has for them (shared connections, rotation, a circuit breaker for each cluster, notices)
// need not be made a second time.
package reach
