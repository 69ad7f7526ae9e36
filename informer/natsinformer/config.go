package natsinformer

import (
	"time"

	"github.com/giantswarm/micrologger"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/faults"
	"github.com/operatorkit/operatorkit/internal/panics"
)

// The defaults of a SourceConfig.
const (
	DefaultProbeInterval = 5 * time.Second
	DefaultRelist        = 10 * time.Minute
)

// SourceConfig describes a [Source].
type SourceConfig[T Entity] struct {
	// Bucket contains the entities. It must be set. The bucket need not exist yet.
	Bucket *Bucket[T]
	// Name identifies the source. Default: "bucket " and the name of the bucket.
	Name string
	// Filter reports whether a key belongs to the source. It must always return the same for a key.
	// The server sends the other entries as well, so entities of different kinds are better stored
	// in different buckets. If Filter panics, the key is refused and the panic is logged. Default:
	// all.
	Filter func(key string) bool
	// Indexers are the indexes for ByIndex, by name; they get entities of type T. If one panics,
	// the entity is not indexed and the panic is logged. Default: none.
	Indexers map[string]informer.IndexFunc
	// Resync is the interval, ±10 %, at which all entities are announced again. Default: 0, which
	// is never.
	Resync time.Duration
	// ProbeInterval is the interval at which the source asks the server for the state of the
	// bucket. The probes are the contact that Status reports. They also find problems that a watch
	// does not report: a watch that is stuck, a bucket that is gone or was replaced, and entries
	// that vanished without a trace, such as those with an expired time to live. An unanswered
	// probe becomes an outage after this time, but not before one second. Default: 5 seconds.
	ProbeInterval time.Duration
	// Relist is the interval, ±10 %, at which the whole bucket is listed again and compared,
	// whatever the probes find. Default: 10 minutes.
	Relist time.Duration
	// Registerer registers the metrics operatorkit_natsinformer_undecodable_entries and
	// operatorkit_natsinformer_listings_total, with the label source. Default: none.
	Registerer prometheus.Registerer
	// Logger must be set. It logs outages, their ends, and entries that can't be decoded, never
	// their content.
	Logger micrologger.Logger
}

// validate sets defaults. The error names every invalid field.
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

// guardFilter returns the filter such that a panic is logged and refuses the key.
func guardFilter(filter func(string) bool, logger micrologger.Logger) func(string) bool {
	return func(key string) (ours bool) {
		defer func() {
			if r := recover(); r != nil {
				logger.Log("level", "error", "message", "filter panicked", "key", key, "panic", panics.Describe(r))
				ours = false
			}
		}()
		return filter(key)
	}
}
