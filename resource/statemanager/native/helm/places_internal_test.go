package helm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

func TestWhatIsRenderedAfterItsDeadlineTakesOnePlaceHoweverOftenItIsLookedAt(t *testing.T) {
	c, err := New(Config{RenderTimeout: time.Second, Renderings: 4}) // two of them for a namespace
	if err != nil {
		t.Fatal(err)
	}
	j := &job{Carrier: c, service: &carrier.Service{Fingerprint: "loop", Owner: carrier.Owner{Namespace: "one"}}}
	release := make(chan struct{})
	for range 5 {
		err := j.bounded(t.Context(), func(context.Context) error { <-release; return nil })
		if !framework.IsPermanent(err) || !strings.Contains(err.Error(), "did not end within 1s") {
			t.Fatalf("the error is %v", err)
		}
	}
	if n := len(c.renderings.all); n != 1 {
		t.Errorf("it has %d places", n)
	}
	close(release)
	operatortest.Eventually(t, "it is rendered again when it has ended", func() error {
		if c.renderings.isEndless("loop") || len(c.renderings.all) > 0 {
			return fmt.Errorf("it goes on")
		}
		return nil
	})
	c.config.RenderTimeout = time.Hour
	if err := j.bounded(t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Error(err)
	}

	// What was given up by its caller is no loop.
	ctx, cancel := context.WithCancel(t.Context())
	if err := j.bounded(ctx, func(ctx context.Context) error { cancel(); <-ctx.Done(); return ctx.Err() }); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	if c.renderings.isEndless("loop") {
		t.Error("it is taken for a loop")
	}
}

func TestWaitingForAPlaceIsNoPartOfARendering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := New(Config{RenderTimeout: 2 * time.Second, Renderings: 1})
		if err != nil {
			t.Fatal(err)
		}
		j := &job{Carrier: c, service: &carrier.Service{Fingerprint: "good", Owner: carrier.Owner{Namespace: "one"}}}
		giveBack, err := c.renderings.take(t.Context(), "other")
		if err != nil {
			t.Fatal(err)
		}
		rendering := func(context.Context) error { time.Sleep(time.Second); return nil }
		if err := j.bounded(t.Context(), rendering); !errors.Is(err, context.DeadlineExceeded) || framework.IsPermanent(err) {
			t.Errorf("without a place the error is %v", err)
		}
		time.AfterFunc(1500*time.Millisecond, giveBack)
		if err := j.bounded(t.Context(), rendering); err != nil {
			t.Errorf("it is not rendered after it has waited: %v", err)
		}
	})
}

func TestOneNamespaceHasHalfOfThePlacesAtMost(t *testing.T) {
	none := errors.New("nobody waits")
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(none)
	p := newPlaces(4)
	var back []func()
	for _, namespace := range []string{"one", "one", "two", "two"} {
		giveBack, err := p.take(t.Context(), namespace)
		if err != nil {
			t.Fatal(err)
		}
		back = append(back, giveBack)
		if len(back) == 2 {
			if _, err := p.take(ended, "one"); !errors.Is(err, none) {
				t.Errorf("one namespace has three of four places: %v", err)
			}
		}
	}
	if _, err := p.take(ended, "three"); !errors.Is(err, none) {
		t.Errorf("there are five places: %v", err)
	}
	for _, giveBack := range back {
		giveBack()
	}
	if len(p.shares) > 0 || len(p.all) > 0 {
		t.Errorf("what nobody has is kept: %v, %d", p.shares, len(p.all))
	}
	if _, err := newPlaces(1).take(t.Context(), "one"); err != nil {
		t.Errorf("the only place is nobody's: %v", err)
	}
}
