package pollinformer

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/giantswarm/micrologger"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/faults"
)

// The defaults of a Config.
const (
	DefaultInterval = time.Minute
	DefaultTimeout  = 30 * time.Second
)

// Config describes a source of values of type T.
type Config[T any] struct {
	// Name identifies the source and must be set.
	Name string
	// List returns everything that exists, by key. It must be set, and must return soon after its
	// context has ended. It is never called concurrently. The values belong to the source
	// afterwards.
	List func(ctx context.Context) (map[informer.Key]T, error)
	// Get returns the current state of one thing, to check whether a thing that was not listed is
	// gone. The value belongs to the source afterwards. Default: List is called again for each
	// thing that is gone, and before things of a primary are deleted.
	Get func(ctx context.Context, key informer.Key) (value T, exists bool, err error)
	// Interval is the time from the end of one List to the next, ±10 % at random. Default: one
	// minute.
	Interval time.Duration
	// Timeout is how long a List or a Get may take. Default: 30 seconds.
	Timeout time.Duration
	// Version returns a text that changes with the value. An error is an error of the whole list.
	// Default: a hash of the value as JSON.
	Version func(value T) (string, error)
	// Copy returns a private copy of a value for its reader. Default: informer.Copy, which copies
	// Kubernetes objects and informer.Copiers, and returns anything else unchanged.
	Copy func(value T) T
	// Logger must be set. It logs when the list starts to fail and when it works again.
	Logger micrologger.Logger
}

func (c *Config[T]) validate() error {
	var wrong faults.List
	wrong.If(c.Name == "", "field Name must be set")
	wrong.If(c.List == nil, "field List must be set")
	wrong.If(c.Interval < 0, "field Interval must not be negative, got %s", c.Interval)
	wrong.If(c.Timeout < 0, "field Timeout must not be negative, got %s", c.Timeout)
	wrong.If(c.Logger == nil, "field Logger must be set")
	if err := wrong.Of("pollinformer.Config"); err != nil {
		return err
	}

	if c.Interval == 0 {
		c.Interval = DefaultInterval
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Version == nil {
		c.Version = contentHash[T]
	}
	if c.Copy == nil {
		c.Copy = func(value T) T {
			copied, _ := informer.Copy(value).(T)
			return copied
		}
	}
	return nil
}

func contentHash[T any](value T) (string, error) {
	content, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("hash its content, set Version for values that JSON can't hold: %w", err)
	}
	sum := sha256.Sum256(content)
	return string(sum[:]), nil
}
