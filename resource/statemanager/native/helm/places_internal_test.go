package helm

import (
	"context"
	"errors"
	"testing"
)

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
