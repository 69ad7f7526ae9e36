package oncall

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Prefix begins the names of the metrics of operators.
const Prefix = "operatorkit_"

// Type is what a metric is.
type Type string

// The types of metrics.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// Metric is the definition of a metric.
type Metric struct {
	Name string
	Help string
	Type Type
	// Labels are those whose values differ between series of one operator or between operators, sorted.
	Labels []string
}

// described is how a definition writes itself.
var described = regexp.MustCompile(`^Desc\{fqName: ("(?:[^"\\]|\\.)*"), help: ("(?:[^"\\]|\\.)*"), unit: "[^"]*", constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)

// constantLabel matches the name of a label with a constant value.
var constantLabel = regexp.MustCompile(`([a-z_]+)="(?:[^"\\]|\\.)*"`)

// Describe returns the definitions of all metrics of operators that collector describes, sorted by name, whether they have series or not. A
// registry is a collector.
func Describe(collector prometheus.Collector) ([]Metric, error) {
	descriptions := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptions)
		collector.Describe(descriptions)
	}()
	byName := map[string]Metric{}
	var unknown error
	for d := range descriptions {
		parts := described.FindStringSubmatch(d.String())
		if parts == nil {
			unknown = fmt.Errorf("describe metrics: %s is written in another way than known", d)
			continue
		}
		name, nameErr := strconv.Unquote(parts[1])
		help, helpErr := strconv.Unquote(parts[2])
		if err := cmp.Or(nameErr, helpErr); err != nil {
			unknown = fmt.Errorf("describe metrics: %s: %w", d, err)
			continue
		}
		if !strings.HasPrefix(name, Prefix) {
			continue
		}
		var labels []string
		for _, label := range constantLabel.FindAllStringSubmatch(parts[3], -1) {
			labels = append(labels, label[1])
		}
		if parts[4] != "" {
			labels = append(labels, strings.Split(parts[4], ",")...)
		}
		slices.Sort(labels)
		byName[name] = Metric{Name: name, Help: help, Type: typeOf(name), Labels: labels}
	}
	var metrics []Metric
	for _, m := range byName {
		metrics = append(metrics, m)
	}
	slices.SortFunc(metrics, func(a, b Metric) int { return strings.Compare(a.Name, b.Name) })
	return metrics, unknown
}

// typeOf tells by its name what a metric is: a definition does not say.
func typeOf(name string) Type {
	switch {
	case strings.HasSuffix(name, "_total"):
		return Counter
	case strings.HasSuffix(name, "_duration_seconds"), strings.HasSuffix(name, "_wait_seconds"):
		return Histogram
	}
	return Gauge
}

// named matches the name of a metric of an operator in a query.
var named = regexp.MustCompile(Prefix + `[a-z_]+`)

// Named returns the names of the metrics of operators that a query is about, each once. The series of a histogram are told by its name.
func Named(query string) []string {
	names := named.FindAllString(query, -1)
	for i, name := range names {
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if base := strings.TrimSuffix(name, suffix); typeOf(base) == Histogram {
				names[i] = base
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
