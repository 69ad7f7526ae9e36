package operatortest

import (
	"testing"
	"testing/synctest"
	"time"
)

// On a machine that is too busy to look in time, an operator is given as much longer.
func TestLooksThatComeLateDoNotMakeAnOperatorCalm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c calm
		p := progress{up: true, seen: true}
		c.since(p, "a state")
		pause := func(d time.Duration) {
			paused := time.Now()
			time.Sleep(d)
			c.overslept(paused)
		}
		for range 100 {
			pause(firstPause)
		}
		if got := c.since(p, "a state"); got != 100*firstPause {
			t.Errorf("after a hundred pauses the operator is calm for %s, want %s", got, 100*firstPause)
		}
		pause(time.Minute)
		if got := c.since(p, "a state"); got != 102*firstPause {
			t.Errorf("after one of a minute it is calm for %s, want %s", got, 102*firstPause)
		}
		if got := c.since(p, "another state"); got != 0 {
			t.Errorf("after a change it is calm for %s", got)
		}
		pause(firstPause)
		if got := c.since(p, "another state"); got != firstPause {
			t.Errorf("a pause after that it is calm for %s, want %s", got, firstPause)
		}
	})
}
