// Package story shows deployments onto machines, on a control plane and three Docker engines of its own. A job migrates a database, and a
// service with six containers comes up after it, and is updated while requests are answered. A bad version is rolled back, and a machine is
// lost and comes back. All that is told is what the engines and the requests say.
package story

import (
	"github.com/operatorkit/operatorkit/examples/internal/demo"
	example "github.com/operatorkit/operatorkit/examples/machines"
	"github.com/operatorkit/operatorkit/operator/machines"
)

// New returns the story.
func New() demo.Story {
	w := &world{}
	return demo.Story{
		Name:     "machines",
		Require:  requireEngines,
		Operator: example.Config(machines.Config{Heartbeat: heartbeat, BackOffFactory: retries}),
		Prepare:  w.prepare,
		Tell:     w.tell,
		Look:     "bin/controlplane kubectl -n machines get machines,machineservices",
		Try: []string{
			"bin/controlplane kubectl -n machines get machineservice shop -o yaml",
			`bin/controlplane kubectl -n machines patch machineservice shop --type=merge -p '{"spec":{"replicas":9}}'`,
		},
	}
}
