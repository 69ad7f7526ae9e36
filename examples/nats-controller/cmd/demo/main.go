// Command demo shows the gateway controller on a NATS server, a control plane and a registry of its own: gateways are
// created, what was made for them is changed by hand and put right, gateways are deleted in three ways, one of them while
// the controller does not run.
package main

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/examples/internal/demo"
)

func main() {
	demo.Main(demo.Story{
		Name:  "nats-controller",
		Tell:  tell,
		Look:  "bin/controlplane kubectl -n nats-controller get configmaps",
		Kinds: []client.ObjectList{&corev1.ConfigMapList{}},
	})
}
