package collector_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/operatorkit/operatorkit/internal/collector"
)

func counter(help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: "things_total", Help: help})
}

func TestWhatIsRegisteredIsShared(t *testing.T) {
	registry := prometheus.NewRegistry()
	first, err := collector.Register(registry, counter("Things."))
	if err != nil {
		t.Fatal(err)
	}
	second, err := collector.Register(registry, counter("Things."))
	if err != nil || second != first {
		t.Errorf("the second one is %v, %v", second, err)
	}
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: "things_total", Help: "Things."})
	for name, err := range map[string]error{
		"another help": func() error { _, err := collector.Register(registry, counter("Others.")); return err }(),
		"another type": func() error {
			_, err := collector.Register[prometheus.Collector](prometheus.NewRegistry(), gauge)
			return err
		}(),
	} {
		if (err != nil) != (name == "another help") {
			t.Errorf("%s: %v", name, err)
		}
	}
	mine := counter("Things.")
	if got, err := collector.Register(nil, mine); got != mine || err != nil {
		t.Errorf("without a registerer: %v, %v", got, err)
	}
}
