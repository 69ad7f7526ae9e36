// Package artifact has the types of what services are made of, charts and files. Package fetch fetches them.
package artifact

import (
	"io/fs"

	chart "helm.sh/helm/v4/pkg/chart/v2"
)

// Chart is a chart that was fetched.
type Chart struct {
	*chart.Chart
	// Digest is "sha256:…", as HelmChart.Digest pins it: of the manifest in an OCI registry, of the archive elsewhere.
	Digest string
	// SignedBy is who signed the chart, if its provenance was checked.
	SignedBy string
}

// Files are the files of an artifact, a ConfigMap or a Secret.
type Files struct {
	// FS has the regular files. It is in memory, read-only and safe for concurrent use.
	FS fs.FS
	// Digest is "sha256:…": of the manifest in an OCI registry, of an archive from a web server, or of the names and
	// contents of the entries of a ConfigMap or Secret.
	Digest string
}
