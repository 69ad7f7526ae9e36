// Package oncall has what those need who are called when an operator is in trouble: alert rules with runbooks, and a Grafana dashboard. Both are
// made of the definitions of the metrics: the dashboard has a panel for each metric of runbooks.md, and a rule that names one that does not
// exist is an error of "make generate", which writes docs/oncall. "manifests --monitoring" of package command prints the rules as a
// PrometheusRule. A test of examples/quickstart has each alert fire in a real Prometheus, in its trouble alone.
//
//	metrics, err := oncall.Describe(deps.Registry)
//	dashboard, err := oncall.Dashboard(metrics)
package oncall

//go:generate go run ./generate ../../docs/oncall
