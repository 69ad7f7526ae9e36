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
	"github.com/operatorkit/operatorkit/operator/serviceprovider/internal/redact"
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

// wanted returns the config, which is the caller's, for an object, or a wait, in which the config is called so. A deletion goes on without a
// config: with the last one that was there, or the builder's.
func (c *configs[C]) wanted(ctx context.Context, deletion bool, called string) (config C, err error) {
	if config, err = c.empty(); err != nil {
		return config, err
	}
	c.mu.Lock()
	c.asked = true
	c.mu.Unlock()
	err = c.platform.Client().Get(ctx, keyOf(c.given), config)
	switch missing := apierrors.IsNotFound(err); {
	case missing && deletion:
		last, seen := c.newest()
		if !seen {
			last = c.given
		}
		return copyOf(last), nil
	case missing:
		return config, &wait{reason: ReasonConfigAbsent, message: "waits for the " + called + " in the platform cluster"}
	case err != nil:
		return config, redact.Wrap(fmt.Errorf("%s of cluster %q: %w", c.name(), c.platform.ID(), err), "read the %s", c.kind.Kind)
	}
	c.keep(config)
	if !deletion && config.GetDeletionTimestamp() != nil {
		return config, &wait{reason: ReasonConfigDeleted, message: "the " + called + " in the platform cluster is being deleted"}
	}
	return config, nil
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
