package natsinformer

import (
	"time"

	"github.com/giantswarm/micrologger"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/faults"
)

// The defaults of a SourceConfig.
const (
	DefaultProbeInterval = 5 * time.Second
	DefaultRelist        = 10 * time.Minute
)

// SourceConfig describes a [Source].
type SourceConfig[T Entity] struct {
	// Bucket is where the entities are. It must be set. It need not exist yet.
	Bucket *Bucket[T]
	// Name identifies the source. Default: "bucket " and the name of the bucket.
	Name string
	// Filter tells which keys belong to the source. It must always say the same of a key. The server sends the others
	// nevertheless: entities of different kinds are better kept in different buckets. One that panics refuses the key, which is
	// logged. Default: all.
	Filter func(key string) bool
	// Indexers are the indexes for ByIndex, by name; they get entities of type T. One that panics does not file the
	// entity, which is logged. Default: none.
	Indexers map[string]informer.IndexFunc
	// Resync is the time, ±10 %, after which all entities are announced again, over and over. Default: 0, which is never.
	Resync time.Duration
	// ProbeInterval is the time between two questions to the server how the bucket is. They are the proof of life that
	// Status tells of, and find what a watch does not tell: that it is stuck, that the bucket is gone or another one, and
	// that entries have vanished without a trace, as those whose time to live has ended do. An unanswered question is an
	// outage after this time, and at least a second. Default: 5 seconds.
	ProbeInterval time.Duration
	// Relist is the time, ±10 %, after which the whole bucket is listed again and compared, whatever the probes say.
	// Default: 10 minutes.
	Relist time.Duration
	// Registerer registers the metrics operatorkit_natsinformer_undecodable_entries and
	// operatorkit_natsinformer_listings_total, with the label source. Default: none.
	Registerer prometheus.Registerer
	// Logger must be set. It is told of outages, of their ends, and of entries that can't be decoded, never of content.
	Logger micrologger.Logger
}

// validate fills in defaults. The error names every faulty field.
func (c *SourceConfig[T]) validate() error {
	var wrong faults.List
	wrong.If(c.Bucket == nil, "field Bucket must be set")
	for name, values := range c.Indexers {
		wrong.If(values == nil, "field Indexers has no function for %q", name)
	}
	for field, d := range map[string]time.Duration{"Resync": c.Resync, "ProbeInterval": c.ProbeInterval, "Relist": c.Relist} {
		wrong.If(d < 0, "field %s must not be negative, got %s", field, d)
	}
	wrong.If(c.Logger == nil, "field Logger must be set")
	if err := wrong.Of("natsinformer.SourceConfig"); err != nil {
		return err
	}

	if c.Name == "" {
		c.Name = "bucket " + c.Bucket.Name()
	}
	if c.Filter == nil {
		c.Filter = func(string) bool { return true }
	}
	c.Filter = guardFilter(c.Filter, c.Logger)
	if c.ProbeInterval == 0 {
		c.ProbeInterval = DefaultProbeInterval
	}
	if c.Relist == 0 {
		c.Relist = DefaultRelist
	}
	c.Logger = c.Logger.With("source", c.Name)
	return nil
}

// guardFilter returns the filter so that a panic in it is logged, and refuses the key.
func guardFilter(filter func(string) bool, logger micrologger.Logger) func(string) bool {
	return func(key string) (ours bool) {
		defer func() {
			if r := recover(); r != nil {
				logger.Log("level", "error", "message", "filter panicked", "key", key, "panic", informer.DescribePanic(r))
				ours = false
			}
		}()
		return filter(key)
	}
}

// guard returns the indexers so that a panic in one is logged.
func guard(indexers map[string]informer.IndexFunc, logger micrologger.Logger) map[string]informer.IndexFunc {
	guarded := make(map[string]informer.IndexFunc, len(indexers))
	for name, values := range indexers {
		guarded[name] = func(obj any) (result []string) {
			defer func() {
				if r := recover(); r != nil {
					logger.Log("level", "error", "message", "index panicked", "index", name, "panic", informer.DescribePanic(r))
					result = nil
				}
			}()
			return values(obj)
		}
	}
	return guarded
}
