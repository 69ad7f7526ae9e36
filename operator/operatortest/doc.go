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
// whose owners are gone. There are no nodes: pods stay pending.
//
// [Faults] stands between an operator and its API server, counts the writes, and
// makes single requests fail before or after they were carried out, hang, or be
// answered by an error. [CrashAtEveryWrite] runs a scenario over and over, with
// the operator crashing right before and right after each of its writes, and
// compares what becomes of it.
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
