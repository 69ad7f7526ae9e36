package native

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// missing is what a service waits for whose cluster lacks kinds.
type missing struct {
	fingerprint string
	since       time.Time
	result      *carrier.Result
}

// computeEntry has a carrier work out what has to be done for a service that the set lists. While a kind is missing that a service waits for
// which is not there at all, nothing is fetched and rendered again.
func (c *computation) computeEntry(ctx context.Context, service *resolved) (*carrier.Result, error) {
	kept := c.memory.service(service.Key)
	if waits := kept.waits; waits != nil && waits.fingerprint == service.Fingerprint && waits.result.Found == nil && c.isMissing(waits.result.Missing[0]) {
		again := *waits.result
		return c.untilKinds(service, &again), nil
	}
	by := c.manager.carrierOf(typeOf(service.Template))
	cluster, reader, err := acting(c.cluster, service.Service, &kept.freshness)
	if err != nil {
		return nil, err
	}
	result, err := by.Compute(ctx, cluster, reader, service.Service)
	if err != nil {
		return result, lacking(service.Service, err)
	}
	return c.untilKinds(service, result), nil
}

func (c *computation) isMissing(kind schema.GroupVersionKind) bool {
	_, err := c.cluster.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	return meta.IsNoMatchError(err)
}

// untilKinds bounds how long a service waits for kinds. One that has Failed for that stays so in another process, too. Watches tell when
// the kinds come.
func (c *computation) untilKinds(service *resolved, result *carrier.Result) *carrier.Result {
	kept, timeout := c.memory.service(service.Key), c.manager.config.KindTimeout
	if len(result.Missing) == 0 {
		kept.waits = nil
		return result
	}
	if kept.waits == nil || kept.waits.fingerprint != service.Fingerprint {
		kept.waits = &missing{fingerprint: service.Fingerprint, since: c.now}
	}
	first := *result
	kept.waits.result = &first
	kind := result.Missing[0]
	message := fmt.Sprintf("the cluster has no kind %s of %s, which was waited for for %s: is a service missing that it depends on, or a definition?",
		kind.Kind, kind.GroupVersion(), timeout)
	before := c.order.State(service.Key)
	left := timeout - c.now.Sub(kept.waits.since)
	if left <= 0 || before != nil && before.State == v1alpha1.ServiceStateFailed && before.FailureMessage == message {
		result.Health = carrier.Health{Phase: v1alpha1.ServiceStateFailed, Message: message}
		return result
	}
	result.Requeue = left
	return result
}
