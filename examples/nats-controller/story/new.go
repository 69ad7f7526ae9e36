// Package story shows the gateway controller on a NATS server, a control plane and a registry of its own: gateways are
// created, what was made for them is changed by hand and put right, gateways are deleted in three ways, one of them while
// the controller does not run.
package story

import (
	"context"
	"flag"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/examples/internal/demo"
)

// New returns the story. With the flag --replicas=3 it takes place on a cluster of three NATS servers that keep every bucket.
func New() demo.Story {
	replicas := 1
	return demo.Story{
		Name: "nats-controller",
		Flags: func(flags *flag.FlagSet) {
			flags.IntVar(&replicas, "replicas", replicas, "how many NATS servers there are, each with all buckets: 1 or 3")
		},
		Tell:  func(ctx context.Context, d *demo.Demo) error { return tell(ctx, d, replicas) },
		Look:  "bin/controlplane kubectl -n nats-controller get configmaps",
		Kinds: []client.ObjectList{&corev1.ConfigMapList{}},
	}
}
