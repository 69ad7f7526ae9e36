// Package operatortest runs a real Kubernetes control plane for tests and first
// steps, and breaks it on purpose.
//
// A test asks for one and works in a namespace of its own:
//
//	func TestWebsite(t *testing.T) {
//		kube := operatortest.Start(t)
//		kube.InstallCRDs(t, website.CustomResourceDefinition())
//		namespace := kube.Namespace(t)
//		client, err := client.New(kube.RESTConfig(), client.Options{})
//		...
//	}
//
// A program runs one for as long as it wants:
//
//	kube, err := operatortest.Run(ctx, operatortest.Config{DataDir: "data"})
//	if err != nil {
//		return err
//	}
//	defer kube.Stop(ctx)
//
// What runs are etcd, kube-apiserver and kube-controller-manager, compiled from
// Kubernetes' own sources into one binary (see Binary), each as a process, on
// loopback only, with certificates and ports of their own. RBAC is on. Namespaces
// go away when they are deleted, about five seconds later, and so do objects
// whose owners are gone. There are no nodes: pods stay pending, unless [RunNode]
// stands in for one.
//
// [Faults] stands between an operator and its API server, and other systems that it
// talks to by HTTP; it counts the writes, and makes single requests fail before or
// after they were carried out, hang, be answered by an error, or be carried out and
// answered by a lie.
//
// [Lag] stands there too, and shows an operator lists and watches that are behind.
//
// A [Scenario] is a story about an operator and its user, which a sweep tells again
// and again, comparing what becomes of it:
//
//   - [CrashAtEveryWrite]: the operator crashes right before and right after each of
//     its writes, also those to other systems ([TransportOf]).
//   - [LieAtEveryWrite]: each write is carried out, and its answer is lost, or 404,
//     409 or 500.
//   - [BreakAtEveryWrite]: both, combined, with second mishaps while the operator
//     recovers from a crash.
//   - [LagAtEveryWrite]: the API server lags behind at each write, by [Lag]: the operator is restarted at a replica that
//     shows the past, or its caches are old, or events are held, dropped, repeated or reordered. It must
//     not delete what has to stay, nor set anything back, not even for a while.
//   - [TenantAtEveryWrite]: a user with rights in the namespace does what [Scenario.Tenant] says after each write, such as
//     [TakeFinalizers].
//   - Scenario.Neighbour puts a second operator beside the first, and fails when one
//     of them writes what the other has created. [Ledger] tells that without a scenario.
//
// [Quiet] goes through a scenario once, and fails when an operator that has nothing left to do reconciles, or sends a request. [Survives] is
// mishaps, lags and Quiet in one call. The package frameworktest, below this one, waits until a framework has looked at an object.
//
// The package commandtest, below package command, starts a whole operator for a scenario
// from its command.Config, in a line.
//
// [Rights] goes through scenarios with the rights that the manifests of an operator give it, and names each that is lacking, not used, or
// wider than a role in one namespace.
//
// [StartReplica] runs an operator as a process of its own, and keeps a record of its
// requests. [Replica.PausedUntil] stops it for longer than its lease, and tells what it
// did afterwards:
//
//	a, b := operatortest.StartReplica(t, config), operatortest.StartReplica(t, config)
//	operatortest.Eventually(t, "a works", …)
//	pause := a.PausedUntil("b works", b has written, time.Minute)
//	if len(pause.Changed) > 0 { … }
//
// Promises:
//
//   - No process outlives the one that started it, even one that was killed with
//     SIGKILL; then the temporary data folder goes as well.
//   - A control plane that runs costs its parent no goroutine.
//   - No connection is insecure, those between the parts included.
//   - Instances share nothing: any number run side by side.
//
// Building the binary takes minutes, once for each version of this package and
// of Go. "go test" hides output until a package is done, so build it before:
//
//	go run github.com/operatorkit/operatorkit/operator/operatortest/testenv -build
//
// The same program starts one control plane for the tests of many packages:
//
//	go run github.com/operatorkit/operatorkit/operator/operatortest/testenv -- go test ./...
//
// The binary is kubectl, too, against the instance that was started last:
//
//	controlplane kubectl get namespaces
package operatortest
