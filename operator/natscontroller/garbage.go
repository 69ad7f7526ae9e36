package natscontroller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/internal/panics"
)

// Garbage is a secondary whose primary does not exist.
type Garbage struct {
	// Source is the name of the source of the secondary.
	Source string
	// Key names the secondary.
	Key informer.Key
	// OwnerKind and OwnerKey are the primary that it names.
	OwnerKind, OwnerKey string
	// Version is the revision or resource version of the secondary. It is removed in this version only.
	Version string

	secondary Secondary
	object    any
}

// String says what would be removed, and why.
func (g Garbage) String() string {
	return fmt.Sprintf("remove %s from %s: its owner, %s %s, does not exist",
		strings.TrimPrefix(g.Key.String(), "/"), g.Source, g.OwnerKind, g.OwnerKey)
}

// PlanGarbage returns the secondaries that this controller made, under the names that it and its operator have or had, and that
// name a primary of it which does not exist. It removes nothing. What does not say who made it is left alone.
// What a source tells is asked for again where it is kept: the secondary has to be there still and to name the same
// primary, and the primary must not be there. Secondaries that are being deleted already, and those of primaries whose
// deletion is being processed, are left out, and so are, with a message, those that have or name what can't be a key. It is an error when the primaries, or the secondaries, are not known for
// certain: not synced, out of contact, a bucket that is not there.
func (c *ControllerRuntime[T]) PlanGarbage(ctx context.Context) ([]Garbage, error) {
	if err := inContact(c.primary); err != nil {
		return nil, fmt.Errorf("plan garbage: %w", err)
	}
	var garbage []Garbage
	for _, s := range c.config.Secondaries {
		if err := inContact(s.source); err != nil {
			return nil, fmt.Errorf("plan garbage: %w", err)
		}
		for _, obj := range s.source.List() {
			found, err := c.examine(ctx, s, obj)
			if err != nil {
				return nil, fmt.Errorf("plan garbage: %w", err)
			}
			if found != nil {
				garbage = append(garbage, *found)
			}
		}
	}
	return garbage, nil
}

// inContact returns an error while a source does not know for certain what there is.
func inContact(source informer.Source) error {
	status := source.Status()
	switch {
	case status.LastError != nil:
		return fmt.Errorf("source %q is out of contact: %w", source.Name(), status.LastError)
	case !status.Synced:
		return fmt.Errorf("source %q is not synced", source.Name())
	}
	return nil
}

// examine returns a secondary if it is garbage.
func (c *ControllerRuntime[T]) examine(ctx context.Context, s Secondary, obj any) (*Garbage, error) {
	owner := c.madeFor(obj)
	m, ok := obj.(informer.Meta)
	if !ok || owner == "" || m.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	if !natsinformer.IsKey(owner) {
		// Nobody knows whose it is, and the others must not wait for it.
		c.log("warning", "secondary is left alone: the owner that it names can't be the key of an entry",
			"source", s.source.Name(), "object", m.GetName(), "owner", owner)
		return nil, nil
	}
	if s.bucket != nil && !natsinformer.IsKey(m.GetName()) {
		// It was put there past the client library, by which it can't be read or removed.
		c.log("warning", "secondary is left alone: its name can't be the key of an entry", "source", s.source.Name(), "object", m.GetName(), "owner", owner)
		return nil, nil
	}
	exists, err := c.primaryExists(ctx, owner)
	if err != nil || exists {
		return nil, err
	}
	key := informer.Key{Namespace: m.GetNamespace(), Name: m.GetName()}
	live, exists, err := s.source.GetLive(ctx, key)
	if errors.Is(err, natsinformer.ErrUndecodable) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for %s in source %q: %w", key, s.source.Name(), err)
	}
	if !exists || c.madeFor(live) != owner || live.(informer.Meta).GetDeletionTimestamp() != nil {
		return nil, nil
	}
	g := &Garbage{Source: s.source.Name(), Key: key, OwnerKind: c.config.Kind, OwnerKey: owner, secondary: s, object: live}
	if v, ok := live.(interface{ GetResourceVersion() string }); ok {
		g.Version = v.GetResourceVersion()
	}
	return g, nil
}

// madeFor returns the key of the primary that an object names which this controller made for certain, or "".
func (c *ControllerRuntime[T]) madeFor(obj any) string {
	if madeBy(obj) == "" {
		return ""
	}
	return c.ownerKey(obj)
}

// primaryExists tells whether a primary is there, or is still needed for its deletion.
func (c *ControllerRuntime[T]) primaryExists(ctx context.Context, key string) (bool, error) {
	if _, exists, _ := c.primary.Get(informer.Key{Name: key}); exists || c.primary.isBeingDeleted(key) {
		return true, nil
	}
	_, exists, err := c.primary.GetLive(ctx, informer.Key{Name: key})
	if errors.Is(err, natsinformer.ErrUndecodable) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for owner %s: %w", key, err)
	}
	return exists, nil
}

// GarbageSecondaries implements IController. It removes what PlanGarbage returns, each object only if it has not changed
// since, and at Config.Garbage.Rate. Errors are logged. It does nothing while the controller does not lead.
func (c *ControllerRuntime[T]) GarbageSecondaries() {
	ctx := c.collecting.Load()
	if ctx == nil {
		return
	}
	if err := c.collectOnce(*ctx); err != nil && (*ctx).Err() == nil {
		c.log("error", "garbage is not collected", "error", err.Error())
	}
}

// collect calls GarbageSecondaries once the sources are synced, and then at each interval, until ctx ends.
func (c *ControllerRuntime[T]) collect(ctx context.Context) error {
	c.collecting.Store(&ctx)
	defer c.collecting.Store(nil)
	for _, source := range c.framework.Load().Sources() {
		if err := source.WaitForSync(ctx); err != nil {
			return nil
		}
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		err := panics.Recovered(func() error {
			c.custom.GarbageSecondaries()
			return nil
		})
		if err != nil {
			c.log("error", "garbage is not collected", "error", err.Error())
		}
		timer.Reset(c.config.Garbage.Interval)
	}
}

func (c *ControllerRuntime[T]) collectOnce(ctx context.Context) error {
	garbage, err := c.PlanGarbage(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, g := range garbage {
		if err := c.removals.Wait(ctx); err != nil {
			return err
		}
		err := c.remove(ctx, g)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", g, err))
		}
		if err != nil && apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
			// It is not about this object alone: the next search is the next try.
			break
		}
	}
	return errors.Join(errs...)
}

// remove removes garbage, unless its owner has appeared or it has changed.
func (c *ControllerRuntime[T]) remove(ctx context.Context, g Garbage) error {
	exists, err := c.primaryExists(ctx, g.OwnerKey)
	if err != nil || exists {
		return err
	}
	err = g.secondary.remove(ctx, g.object)
	if apierrors.IsConflict(err) {
		c.log("debug", "garbage has changed and stays", "source", g.Source, "object", g.Key.String())
		return nil
	}
	if err != nil {
		return err
	}
	c.metrics.collected.WithLabelValues(g.Source).Inc()
	c.log("info", "garbage collected", "source", g.Source, "object", g.Key.String(), "owner", g.OwnerKey)
	return nil
}
