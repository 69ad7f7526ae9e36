package manifest

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/internal/bytelru"
	"github.com/operatorkit/operatorkit/resource/internal/serverside"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

const (
	// remembered is how many bytes of inventories, and how many verdicts on objects, a Carrier keeps.
	remembered         = 128 << 20
	rememberedVerdicts = 4096
)

// Carrier is the carrier of kustomizations and manifests. It is safe for concurrent use for different services.
type Carrier struct {
	config Config
	// inventories are the inventories that were read, by UID and resource version.
	inventories *bytelru.Cache[version, *inventory]
	verdicts    serverside.Verdicts
}

var _ carrier.Carrier = (*Carrier)(nil)

// New returns a Carrier. The error names every faulty field and wraps framework.ErrInvalidConfig.
func New(config Config) (*Carrier, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Carrier{
		config: config, inventories: bytelru.New[version, *inventory](remembered), verdicts: serverside.NewVerdicts(rememberedVerdicts),
	}, nil
}

// Compute implements carrier.Carrier. With an error it returns what was found out before, unless that is nothing.
func (c *Carrier) Compute(ctx context.Context, cluster carrier.Cluster, live client.Reader, service *carrier.Service) (*carrier.Result, error) {
	have, err := c.read(ctx, cluster, service)
	if refused := (*RefusedError)(nil); errors.As(err, &refused) && service.Entry == nil {
		return &carrier.Result{Notes: []string{fmt.Sprintf("service %s stays, because it belongs to %s", service.Key, refused.Owner)}}, nil
	}
	if err != nil {
		return nil, err
	}
	if service.Entry == nil {
		return c.computeRemoval(ctx, cluster, service, have)
	}
	return c.computeInstallation(ctx, cluster, live, service, have)
}

// CarryOut implements carrier.Carrier.
func (c *Carrier) CarryOut(ctx context.Context, cluster carrier.Cluster, service *carrier.Service, result *carrier.Result) error {
	switch todo := result.Payload.(type) {
	case *installation:
		return c.carryOutInstallation(ctx, cluster, service, todo)
	case *removal:
		return c.carryOutRemoval(ctx, cluster, service, todo)
	}
	return fmt.Errorf("carry out service %s: %w", service.Key, errNotComputed)
}

var errNotComputed = errors.New("the result is not one of this carrier with changes")

// List implements carrier.Carrier. It takes one request, which reads metadata only.
func (c *Carrier) List(ctx context.Context, cluster carrier.Cluster, owner carrier.Owner, former ...carrier.Keeper) ([]carrier.Found, error) {
	return list(ctx, cluster, owner, former)
}
