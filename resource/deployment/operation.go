package deployment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/operatorkit/operatorkit/internal/outlive"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
)

// Client sees and changes machines. See the interfaces for what an implementation promises.
type Client interface {
	api.ContainerClient
	api.DNSClient
	api.ImageClient
	api.MachineClient
	api.ServiceClient
	api.VolumeClient
}

// Operation is a step of a plan, or several of them.
type Operation interface {
	// Execute carries the operation out. It is idempotent, and cleans up after itself when it fails.
	Execute(ctx context.Context, cli Client) error
	// Describe says what it does.
	Describe() Description
	// Format and String are those of the description.
	Format(resolver NameResolver) string
	String() string
}

// step is an operation that can be undone until it is committed.
type step interface {
	Operation
	// machine is where it happens.
	machine() string
	// apply does everything but taking away what is needed to undo it. When it fails it has undone itself.
	apply(ctx context.Context, cli Client) error
	// verify tells whether what was applied still works.
	verify(ctx context.Context, cli Client) error
	// commit takes away what is needed to undo it.
	commit(ctx context.Context, cli Client) error
	// revert undoes what was applied.
	revert(ctx context.Context, cli Client) error
}

// perform is Execute of a step.
func perform(ctx context.Context, cli Client, s step) error {
	return track(ctx, s, s.machine(), func() error {
		if err := s.apply(ctx, cli); err != nil {
			return err
		}
		return s.commit(ctx, cli)
	})
}

// CleanupTimeout is how long cleaning up after an operation goes on when the context of the operation has ended, beyond the time that
// containers have for stopping. Until then it may take longer: on its machine it may have to wait for others.
const CleanupTimeout = time.Minute

// cleanup returns a context for cleaning up.
func cleanup(ctx context.Context, more time.Duration) (context.Context, context.CancelFunc) {
	return outlive.Context(ctx, CleanupTimeout+more)
}

// cleanupRetries is how often a step of cleaning up is tried again, which is worth more than one of going forward: nothing comes
// after it.
const cleanupRetries = 5

// persist does f until it succeeds, its error is one of those given, or it was tried often enough.
func persist(ctx context.Context, f func() error, final ...error) error {
	b := backoff.NewExponentialBackOff(backoff.WithInitialInterval(200*time.Millisecond), backoff.WithMaxInterval(5*time.Second))
	return backoff.Retry(func() error {
		err := f()
		for _, e := range final {
			if errors.Is(err, e) {
				return backoff.Permanent(err)
			}
		}
		return err
	}, backoff.WithContext(backoff.WithMaxRetries(b, cleanupRetries), ctx))
}

// gone makes success of something that is not there.
func gone(err error) error {
	if errors.Is(err, api.ErrNotFound) {
		return nil
	}
	return err
}

// heed remembers of an error that the engine did not give ports of a machine, or without an error that it did.
func heed(cli Client, machineID string, ports []api.PortSpec, err error) error {
	if reserver, ok := cli.(scheduler.Reserver); ok && len(ports) > 0 {
		switch {
		case err == nil:
			reserver.Reservations().Given(machineID, ports)
		case errors.Is(err, api.ErrPortTaken):
			reserver.Reservations().Refused(machineID, ports)
		}
	}
	return err
}

type namesKey struct{}

// withNames returns a context whose errors have the names of machines.
func withNames(ctx context.Context, names NameResolver) context.Context {
	return context.WithValue(ctx, namesKey{}, orIDs(names))
}

// on adds to an error what was done, and where.
func on(ctx context.Context, machineID, what string, err error) error {
	if err == nil {
		return nil
	}
	if names, ok := ctx.Value(namesKey{}).(NameResolver); ok {
		machineID = names.MachineName(machineID)
	}
	return fmt.Errorf("%s on machine %s: %w", what, machineID, err)
}
