package carrier

import (
	"context"

	"github.com/operatorkit/operatorkit/resource/statemanager/native/artifact"
)

// Source gives what the template of a service names: its chart, or its files. It fetches when it is asked and not before.
type Source interface {
	// Chart returns the chart of a template with Helm.
	Chart(ctx context.Context) (*artifact.Chart, error)
	// Files returns the files of a template with Kustomize or Resources, and the folder in them where to begin.
	Files(ctx context.Context) (*artifact.Files, string, error)
}
