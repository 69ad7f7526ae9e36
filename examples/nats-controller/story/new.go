// Package story shows the gateway controller on a NATS server, a control plane and a registry of its own: gateways are
// created, what was made for them is changed by hand and put right, gateways are deleted in three ways, one of them while
// the controller does not run.
package story

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/examples/internal/demo"
)

// New returns the story.
func New() demo.Story {
	return demo.Story{
		Name:  "nats-controller",
		Tell:  tell,
		Look:  "bin/controlplane kubectl -n nats-controller get configmaps",
		Kinds: []client.ObjectList{&corev1.ConfigMapList{}},
	}
}
