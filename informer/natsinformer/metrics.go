package natsinformer

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// counts has the values of a source's metrics.
type counts struct {
	undecodable atomic.Int64
	listings    atomic.Int64
}

func (c *counts) register(registerer prometheus.Registerer, source string) error {
	if registerer == nil {
		return nil
	}
	labels := prometheus.Labels{"source": source}
	undecodable := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "operatorkit_natsinformer_undecodable_entries", ConstLabels: labels,
		Help: "Entries whose value can't be decoded.",
	}, func() float64 { return float64(c.undecodable.Load()) })
	listings := prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "operatorkit_natsinformer_listings_total", ConstLabels: labels,
		Help: "Complete listings of the bucket. More than one in the Relist interval tells of lost connections or watches.",
	}, func() float64 { return float64(c.listings.Load()) })
	if err := registerer.Register(undecodable); err != nil {
		return err
	}
	return registerer.Register(listings)
}
