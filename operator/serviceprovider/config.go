package serviceprovider

import (
	"context"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusters"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/internal/discreet"
)

// configs reads the provider's config and remembers the last one. It is read from the API server for every reconciliation: a
// reconciliation that a change of the config has brought about sees that change.
type configs[C Config] struct {
	platform *clusters.Cluster
	// given is the config of the builder.
	given C
	kind  schema.GroupVersionKind

	mu sync.Mutex
	// last is the newest config that was seen, if seen is set. It is never changed.
	last C
	seen bool
	// asked is set when the first reconciliation begins to read: from then on everybody is told of a change. told is the version
	// that was told last.
	asked bool
	told  string
}

func newConfigs[C Config](platform *clusters.Cluster, given C) (*configs[C], error) {
	gvk, err := apiutil.GVKForObject(given, platform.Scheme())
	if err != nil {
		return nil, err
	}
	return &configs[C]{platform: platform, given: copyOf(given), kind: gvk}, nil
}

func copyOf[O client.Object](o O) O { return o.DeepCopyObject().(O) }

// empty returns a config without content.
func (c *configs[C]) empty() (C, error) {
	o, err := c.platform.Scheme().New(c.kind)
	if err != nil {
		return c.given, fmt.Errorf("make an empty %s: %w", c.kind.Kind, err)
	}
	return o.(C), nil
}

// name names the config in errors.
func (c *configs[C]) name() string {
	return c.kind.Kind + " " + strings.TrimPrefix(keyOf(c.given).String(), "/")
}

// read returns the config, which is the caller's, and false when there is none.
func (c *configs[C]) read(ctx context.Context) (config C, exists bool, err error) {
	if config, err = c.empty(); err != nil {
		return config, false, err
	}
	err = c.platform.Client().Get(ctx, keyOf(c.given), config)
	switch {
	case apierrors.IsNotFound(err):
		return config, false, nil
	case err != nil:
		return config, false, discreet.Step(fmt.Errorf("%s of cluster %q: %w", c.name(), c.platform.ID(), err), "read the %s", c.kind.Kind)
	}
	return config, true, nil
}

// get is read for a reconciliation.
func (c *configs[C]) get(ctx context.Context) (config C, exists bool, err error) {
	c.mu.Lock()
	c.asked = true
	c.mu.Unlock()
	config, exists, err = c.read(ctx)
	if err == nil && exists {
		c.keep(config)
	}
	return config, exists, err
}

// look is read for a plan. What a reconciliation would wait for is an error.
func (c *configs[C]) look(ctx context.Context, deletion bool) (C, error) {
	config, exists, err := c.read(ctx)
	switch {
	case err != nil || exists && (deletion || config.GetDeletionTimestamp() == nil):
		return config, err
	case deletion:
		return c.remembered(), nil
	case exists:
		return config, fmt.Errorf("the %s in the platform cluster is being deleted", c.name())
	}
	return config, fmt.Errorf("waits for the %s in the platform cluster", c.name())
}

// lacking and leaving tell users what objects wait for.
func (c *configs[C]) lacking() string {
	return fmt.Sprintf("waits for the %s in the platform cluster", c.kind.Kind)
}

func (c *configs[C]) leaving() string {
	return fmt.Sprintf("the %s in the platform cluster is being deleted", c.kind.Kind)
}

// known is get for a deletion, which goes on without a config: with the last one that was there, or the builder's.
func (c *configs[C]) known(ctx context.Context) (C, error) {
	config, exists, err := c.get(ctx)
	if err != nil || exists {
		return config, err
	}
	return c.remembered(), nil
}

// remembered is the last config that was there, or the builder's.
func (c *configs[C]) remembered() C {
	if last, seen := c.newest(); seen {
		return copyOf(last)
	}
	return copyOf(c.given)
}

// keep remembers a config.
func (c *configs[C]) keep(config C) {
	config = copyOf(config)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last, c.seen = config, true
}

// newest returns the last config that was seen, which must not be changed, or the zero value.
func (c *configs[C]) newest() (last C, seen bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last, c.seen
}

// absent is the version of a config that is not there.
const absent = "absent"

// concerns tells whether a change to a version concerns objects. Before the first reconciliation has begun to read, all are still to be
// reconciled, and will see this version or a later one.
func (c *configs[C]) concerns(version string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	news := c.asked && c.told != version
	c.told = version
	return news
}
