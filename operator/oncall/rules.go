package oncall

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// runbooks is where the runbooks are.
const runbooks = "https://github.com/operatorkit/operatorkit/blob/main/docs/oncall/runbooks.md#"

// selected matches a metric of an operator in a query, and the beginning of its selector, if it has one.
var selected = regexp.MustCompile(Prefix + `[a-z_]+(\{)?`)

// ofJob limits a query to the metrics that Prometheus has collected as a job; an empty one leaves it as it is.
func ofJob(query, job string) string {
	if job == "" {
		return query
	}
	return selected.ReplaceAllStringFunc(query, func(metric string) string {
		if name, ok := strings.CutSuffix(metric, "{"); ok {
			return fmt.Sprintf("%s{job=%q,", name, job)
		}
		return fmt.Sprintf("%s{job=%q}", metric, job)
	})
}

// Rules returns the groups of alert rules, as a file of rules of Prometheus and a PrometheusRule have them: for the operator that is collected
// as a job, or for all operators without one.
func Rules(job string) map[string]any {
	var rules []any
	for _, a := range Alerts {
		rule := map[string]any{
			"alert": a.Name, "expr": ofJob(a.Query, job), "labels": map[string]any{"severity": a.Severity},
			"annotations": map[string]any{"summary": a.Summary, "description": a.Means, "runbook_url": runbooks + strings.ToLower(a.Name)},
		}
		if a.For > 0 {
			rule["for"] = fmt.Sprintf("%dm", int(a.For/time.Minute))
		}
		rules = append(rules, rule)
	}
	return map[string]any{"groups": []any{map[string]any{"name": "operatorkit", "rules": rules}}}
}

// Runbooks returns the runbooks of all alerts, and a list of the metrics, as Markdown. An alert about a metric that is none of those is an error.
func Runbooks(metrics []Metric) ([]byte, error) {
	known := map[string]bool{}
	for _, m := range metrics {
		known[m.Name] = true
	}
	var b strings.Builder
	b.WriteString("# Runbooks\n\n<!-- Written by make generate, from operator/oncall. -->\n\n" +
		"Each alert of [alerts.yaml](alerts.yaml), and below the metrics of every operator, which [dashboard.json](dashboard.json) shows.\n" +
		"Beside these there is operatorkit_framework_info, 1 while a framework runs; packages such as machines, servicesets, statemanagers,\n" +
		"granter and target list theirs in their doc.go.\n" +
		"`manifests --monitoring` of every operator prints the rules for the Prometheus Operator.\n")
	for _, a := range Alerts {
		for _, name := range Named(a.Query) {
			if !known[name] {
				return nil, fmt.Errorf("alert %s is about %s, and there is no such metric", a.Name, name)
			}
		}
		after := "at once"
		if a.For > 0 {
			after = fmt.Sprintf("after %d min", int(a.For/time.Minute))
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s, %s: `%s`\n\n- **What it means.** %s\n- **Where to look.** %s\n- **What to do.** %s\n",
			a.Name, a.Severity, after, a.Query, a.Means, a.Look, a.Mend)
	}
	b.WriteString("\n## Metrics\n\n| metric | type | labels | |\n| --- | --- | --- | --- |\n")
	for _, m := range metrics {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, m.Type, strings.Join(m.Labels, ", "), strings.ReplaceAll(m.Help, "|", `\|`))
	}
	return []byte(b.String()), nil
}

// RulesFile returns the rules as a file for Prometheus.
func RulesFile() ([]byte, error) {
	text, err := yaml.Marshal(Rules(""))
	return append([]byte("# Written by make generate, from operator/oncall.\n"), text...), err
}
