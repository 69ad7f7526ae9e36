// Package story shows the Postgres provider on four control planes of its own (platform, onboarding, MCP and workload) with two
// users. A database is ordered, another one waits for room, the provider's configuration and a Secret that it refers to are
// changed, credentials are renewed and revoked, and a database is deleted. Everything that is told is checked on the clusters
// themselves.
package story

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/operatorkit/operatorkit/examples/internal/demo"
	postgres "github.com/operatorkit/operatorkit/examples/serviceprovider"
	"github.com/operatorkit/operatorkit/examples/serviceprovider/v1alpha1"
)

// The names of the control planes. That of the platform is the Demo's.
const (
	platform   = "platform"
	onboarding = "onboarding"
	mcp        = "mcp"
	workload   = "workload"
)

// New returns the story.
func New() demo.Story {
	w := &world{}
	return demo.Story{
		Name:        "serviceprovider",
		Operator:    postgres.Platform,
		AddToScheme: []func(*runtime.Scheme) error{v1alpha1.AddToScheme},
		Clusters:    []string{onboarding, mcp, workload},
		// What makes Pods of a StatefulSet, and has its disks go with it.
		Controllers: []string{"statefulset-controller", "persistentvolumeclaim-protection-controller"},
		Look:        "bin/controlplane kubectl --context onboarding get postgreses -A   # or mcp, workload; without: the platform's",
		Prepare:     w.prepare,
		Tell:        w.tell,
		Try: []string{
			"bin/controlplane kubectl get clusterrequests,accessrequests -A",
			"bin/controlplane kubectl --context workload -n postgres-team-green delete service reports   # it comes back",
			"bin/controlplane kubectl --context onboarding -n team-green delete postgres reports         # nothing of it stays",
		},
	}
}
