// Package collector registers collectors of metrics that several owners share.
package collector

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Register registers a collector and returns it, or the one of the same type that is registered under the same names already. Without a
// registerer it only returns it. The error is that of the registerer.
func Register[C prometheus.Collector](to prometheus.Registerer, c C) (C, error) {
	if to == nil {
		return c, nil
	}
	err := to.Register(c)
	var already prometheus.AlreadyRegisteredError
	if errors.As(err, &already) {
		if existing, ok := already.ExistingCollector.(C); ok {
			return existing, nil
		}
	}
	return c, err
}
