package members

import (
	"errors"
	"fmt"
	"time"

	"github.com/giantswarm/micrologger"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/operatorkit/operatorkit/internal/faults"
	"github.com/operatorkit/operatorkit/operator/internal/ring"
)

// ErrLost is in the chain of what Run returns when the Lease of the replica was taken away.
var ErrLost = errors.New("the lease of this replica was taken away")

// Config configures a Replica. All fields but Capacity, Version and Page are required.
type Config struct {
	// Leases are those of the namespace of the ring. It must read from the API server.
	Leases coordinationv1client.LeaseInterface
	// Ring is the name of the ring, and of the Lease with its table. It leaves room for a hyphen and 16 characters more.
	Ring string
	// Member is the name of the replica. No other process ever has had it.
	Member string
	// Capacity is how much the replica can carry, next to others. Default: 1.
	Capacity int
	// Version is that of the program.
	Version string
	// Page tells where the page of the replica is, for others to ask, each time that the Lease is written. Default: nowhere.
	Page func() Page
	// LeaseDuration is after which time without a renewal others may take the work over, in whole seconds.
	LeaseDuration time.Duration
	// RetryPeriod is the pause between two renewals.
	RetryPeriod time.Duration
	// RequestTimeout is how long a request may take.
	RequestTimeout time.Duration
	// Leads tells whether this replica writes the table. It costs nothing but work when several do.
	Leads func() bool
	// Renewed is called after each renewal with when that was begun.
	Renewed func(start time.Time)
	// Weigh tells where the objects are in what the replica owns, as far as it has listed them, in order.
	Weigh func(owned []ring.Span) []ring.Bucket
	// Listed tells what the replica knows all objects of, in order.
	Listed func() []ring.Span
	// Noted is called before a table is followed in which former owners have left something for this replica, perhaps more than once.
	Noted func(notes []ring.Note)
	// Works tells whether the replica can work at all. One that can't has nothing that others could take from it.
	Works func() bool
	// Logger is told of what changes, and of what fails.
	Logger micrologger.Logger
}

func (c *Config) validate() error {
	var wrong faults.List
	wrong.If(c.Leases == nil, "Leases must not be nil")
	wrong.If(c.Ring == "", "Ring must not be empty")
	wrong.If(c.Member == "", "Member must not be empty")
	wrong.If(c.Capacity < 0, "Capacity must not be negative, is %d", c.Capacity)
	wrong.If(c.LeaseDuration < time.Second || c.LeaseDuration%time.Second != 0,
		"LeaseDuration must be in whole seconds, one at least, is %s", c.LeaseDuration)
	wrong.If(c.RetryPeriod <= 0 || c.RetryPeriod >= c.LeaseDuration, "RetryPeriod must be more than nothing and less than LeaseDuration (%s), is %s",
		c.LeaseDuration, c.RetryPeriod)
	wrong.If(c.RequestTimeout <= 0, "RequestTimeout must be more than nothing, is %s", c.RequestTimeout)
	wrong.If(c.Leads == nil || c.Renewed == nil || c.Weigh == nil || c.Listed == nil || c.Noted == nil || c.Works == nil || c.Logger == nil,
		"Leads, Renewed, Weigh, Listed, Noted, Works and Logger must not be nil")
	if err := wrong.Of("members.Config"); err != nil {
		return fmt.Errorf("share the work of replicas: %w", err)
	}
	if c.Capacity == 0 {
		c.Capacity = 1
	}
	if c.Page == nil {
		c.Page = func() Page { return Page{} }
	}
	return nil
}
