package upgrade

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/internal/access"
)

// The reasons of the events about upgrades.
const (
	ReasonFailed = "UpgradeFailed"
	ReasonHalted = "UpgradeHalted"
)

// report logs the difference of two states, and writes events.
func (c *Controller) report(ctx context.Context, before, now State, share Share) {
	for _, p := range now.Places {
		f, obj := c.stored(p.id())
		reported := slices.ContainsFunc(before.Places, func(b Place) bool { return b.Object == p.Object && b.Failed != "" })
		if p.Failed != "" && !reported && obj != nil && share.Owns(p.key()) {
			access.EngineOf(f).Warn(obj, ReasonFailed, "This object was changed by the upgrade of the operator and "+p.Failed)
		}
	}
	if before.Phase == now.Phase && before.To == now.To {
		return
	}
	level := "info"
	if now.Phase == Halted {
		level = "error"
	}
	c.config.Logger.Log("level", level, "message", "upgrade "+string(now.Phase), "from", now.From.String(), "to", now.To.String(),
		"done", now.Done, "reason", now.Reason)
	if now.Phase == Halted && share.Leads {
		c.warnHalted(ctx, now)
	}
}

// warnHalted writes an event on the Deployment of the operator, if there is one of its name.
func (c *Controller) warnHalted(ctx context.Context, s State) {
	deployment := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}}
	key := client.ObjectKey{Namespace: c.config.Record.Namespace, Name: c.config.Operator}
	if err := c.config.Record.Client.Get(ctx, key, deployment); err != nil {
		c.config.Logger.Log("level", "info", "message", "no event on the Deployment says that the upgrade is halted", "error", err.Error())
		return
	}
	access.EngineOf(c.config.Frameworks[0]).Warn(deployment, ReasonHalted, fmt.Sprintf(
		"The upgrade from %s to %s is halted: %s. Go back to the former build, or fix the cause and run '%s upgrade resume'.",
		s.From, s.To, s.Reason, c.config.Operator))
}

// View is an upgrade as the page shows it.
type View struct {
	State
	// Waiting are the first objects of this replica that wait for a place.
	Waiting []Waiting `json:"waiting,omitempty"`
}

// Waiting is an object that waits for a place.
type Waiting struct {
	Object
	// Would says what would be changed.
	Would  string `json:"would"`
	OnHold bool   `json:"onHold,omitempty"`
}

// maxShown is how many objects that wait the page lists.
const maxShown = 10

// View returns the upgrade that is under way, or nil.
func (c *Controller) View() *View {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.Phase == "" || c.state.Phase == Finished {
		return nil
	}
	view := &View{State: c.state}
	for _, o := range c.waiting() {
		if len(view.Waiting) < maxShown {
			view.Waiting = append(view.Waiting, Waiting{o.Object, o.held, o.onHold})
		}
	}
	return view
}
