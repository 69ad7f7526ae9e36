// Package story shows the platform on three control planes and a registry of charts, all of its own: services come up on
// two clusters, layer by layer, with values that are filled in for each, and one that Helm has installed before is taken over.
// One is upgraded along its chain, a broken version of another is held back and repaired, what somebody edits on a cluster is
// put right, but for what is left to the cluster, and services are removed. Everything that is told is checked on the clusters
// themselves.
package story

import (
	"github.com/operatorkit/operatorkit/examples/internal/demo"
	"github.com/operatorkit/operatorkit/examples/platform"
	"github.com/operatorkit/operatorkit/operator/servicesets"
	"github.com/operatorkit/operatorkit/operator/statemanagers"
)

// brokenPort is what is wrong with gateway 2.1.0. The operator logs it each time that it tries.
const brokenPort = "90900"

// New returns the story.
func New() demo.Story {
	w := &world{native: &statemanagers.NativeConfig{}}
	return demo.Story{
		Name:     "platform",
		Operator: platform.Config(servicesets.Config{}, w.native),
		Clusters: []string{"eu", "us"},
		// Deployments become ready, though there are no nodes for pods.
		Controllers: []string{"deployment-controller", "replicaset-controller"},
		Look:        "bin/controlplane kubectl --context eu get services,configmaps -A   # or us; without: the operator's",
		Prepare:     w.prepare,
		Told:        []string{brokenPort},
		Tell:        w.tell,
		Try: []string{
			"bin/controlplane kubectl get servicesets,clusterdeployments -n platform",
			"bin/controlplane kubectl --context eu -n web delete service shop      # it comes back",
			"bin/controlplane kubectl -n platform label clusterdeployment us stage-   # all leaves us, the top layer first",
		},
	}
}
