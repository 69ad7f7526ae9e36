package operator

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/internal/ring"
	"github.com/operatorkit/operatorkit/operator/logging"
)

type idleResource struct{}

func (idleResource) Name() string                             { return "idle" }
func (idleResource) EnsureCreated(context.Context, any) error { return nil }
func (idleResource) EnsureDeleted(context.Context, any) error { return nil }

func TestARangeInWhichNothingGoesOnIsPassedOnAlthoughWorkGoesOnInAnotherOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger, err := logging.New(logging.Config{Writer: io.Discard, Format: logging.FormatText})
		if err != nil {
			t.Fatal(err)
		}
		f, err := framework.New(framework.Config{
			Name: "f", Source: informer.NewPush("objects"), Logger: logger, Resources: []framework.Resource{idleResource{}}, DisableFinalizer: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		h := newHandover([]*framework.Framework{f}, logger, 15*time.Second, func() {})
		h.holder = ring.NewHolder("a", nil)
		if err := f.Share(&shard{h.holder, newDivision(Config{}, func() {})}); err != nil {
			t.Fatal(err)
		}
		table := ring.Table{Generation: 5, Ranges: []ring.Range{
			{Owner: "a", Next: "b", Known: true, Since: 5}, {First: 10, Owner: "a", Next: "c", Known: true, Since: 5},
		}}
		h.holder.Apply("life", table)
		if !h.holder.Begin(3) {
			t.Fatal("it may not work in what it has")
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			h.run(ctx)
		}()
		h.heard(table, "a", time.Now())
		time.Sleep(20 * time.Minute)
		if given := h.holder.Confirmation().Given; len(given) != 1 || given[0].First != 10 {
			t.Errorf("it works in the first range, and has given %+v", given)
		}
		h.holder.End(3)
		time.Sleep(time.Minute)
		if given := h.holder.Confirmation().Given; len(given) != 2 {
			t.Errorf("it works nowhere, and has given %+v", given)
		}
		cancel()
		<-ended
	})
}
