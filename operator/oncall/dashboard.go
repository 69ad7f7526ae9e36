package oncall

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// The size of panels, in units of Grafana, whose rows are 24 wide.
const (
	panelWidth, panelHeight = 8, 7
	rowWidth                = 24
)

// section is a row of the dashboard.
type section struct{ title, prefix string }

var sections = []section{
	{"Operator", Prefix + "operator_"},
	{"Frameworks", Prefix + "framework_"},
	{"Requests to API servers", Prefix + "client_"},
}

// Dashboard returns the dashboard with a panel for each of the metrics, as Grafana imports it.
func Dashboard(metrics []Metric) ([]byte, error) {
	var panels []any
	y := 0
	for _, s := range sections {
		panels = append(panels, map[string]any{"id": len(panels) + 1, "type": "row", "title": s.title, "gridPos": map[string]any{"x": 0, "y": y, "w": rowWidth, "h": 1}})
		y++
		x := 0
		for _, m := range metrics {
			if !strings.HasPrefix(m.Name, s.prefix) {
				continue
			}
			if x == rowWidth {
				x, y = 0, y+panelHeight
			}
			panels = append(panels, panel(m, len(panels)+1, x, y, strings.TrimPrefix(m.Name, s.prefix)))
			x += panelWidth
		}
		y += panelHeight
	}
	dashboard := map[string]any{
		"title": "operatorkit", "uid": "operatorkit", "tags": []string{"operatorkit"}, "schemaVersion": 39, "editable": true, "refresh": "30s",
		"time": map[string]any{"from": "now-1h", "to": "now"}, "panels": panels,
		"templating": map[string]any{"list": []any{
			map[string]any{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"},
			map[string]any{"name": "job", "type": "query", "label": "Operator", "datasource": datasource, "multi": true, "includeAll": true, "allValue": ".*",
				"refresh": 2, "query": "label_values(" + Prefix + "operator_leading, job)"},
		}},
	}
	text, err := json.MarshalIndent(dashboard, "", "  ")
	return append(text, '\n'), err
}

var datasource = map[string]any{"type": "prometheus", "uid": "${datasource}"}

func panel(m Metric, id, x, y int, title string) any {
	unit := "short"
	switch {
	case strings.HasSuffix(m.Name, "_timestamp_seconds"):
		unit = "dateTimeFromNow"
	case strings.HasSuffix(m.Name, "_seconds"):
		unit = "s"
	case m.Type == Counter:
		unit = "ops"
	}
	legend := ""
	for _, label := range m.Labels {
		legend += " {{" + label + "}}"
	}
	return map[string]any{
		"id": id, "type": "timeseries", "title": strings.ReplaceAll(strings.TrimSuffix(title, "_total"), "_", " "), "description": m.Help, "datasource": datasource,
		"gridPos":     map[string]any{"x": x, "y": y, "w": panelWidth, "h": panelHeight},
		"fieldConfig": map[string]any{"defaults": map[string]any{"unit": unit}, "overrides": []any{}},
		"targets":     []any{map[string]any{"refId": "A", "datasource": datasource, "expr": m.Query(`job=~"$job"`), "legendFormat": strings.TrimSpace(legend)}},
	}
}

// Query returns what a panel shows of the metric: the rate of a counter, the time that all but a hundredth of what a histogram has measured
// took at most, or a gauge as it is, of the series that match the selector.
func (m Metric) Query(selector string) string {
	by := func(more ...string) string { return strings.Join(append(slices.Clone(m.Labels), more...), ", ") }
	switch m.Type {
	case Counter:
		return fmt.Sprintf("sum by (%s) (rate(%s{%s}[5m]))", by(), m.Name, selector)
	case Histogram:
		return fmt.Sprintf("histogram_quantile(0.99, sum by (%s) (rate(%s_bucket{%s}[5m])))", by("le"), m.Name, selector)
	}
	return fmt.Sprintf("max by (%s) (%s{%s})", by(), m.Name, selector)
}
