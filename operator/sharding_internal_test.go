package operator

import (
	"testing"
	"time"

	"github.com/operatorkit/operatorkit/operator/internal/slots"
)

func setOf(list ...int) (s slots.Set) {
	for _, slot := range list {
		s.Add(slot)
	}
	return s
}

func TestWhatAReplicaGetsAndGivesUpIsCounted(t *testing.T) {
	tests := []struct {
		name         string
		before, now  slots.Set
		gained, lost int64
	}{
		{"the first slots", setOf(), setOf(1), 1, 0},
		{"one more", setOf(1), setOf(1, 2), 1, 0},
		{"one less", setOf(1, 2), setOf(2), 0, 1},
		{"another one", setOf(1), setOf(2), 1, 1},
		{"none any more", setOf(1), setOf(), 0, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var c shardCounts
			c.note(tt.before, tt.now)
			if c.gained.Load() != tt.gained || c.lost.Load() != tt.lost || c.slots.Load() != int64(tt.now.Len()) {
				t.Errorf("gained %d times, lost %d times, %d slots; want %d, %d and %d", c.gained.Load(), c.lost.Load(), c.slots.Load(), tt.gained, tt.lost, tt.now.Len())
			}
		})
	}
}

func TestTimeInWhichNoReplicaMayBeginWorkInASlotIsCounted(t *testing.T) {
	start := time.Now()
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	var c shardCounts
	c.follow(true, at(0))
	c.follow(false, at(10))
	c.follow(false, at(11))
	if got := c.unownedSeconds(at(12)); got != 2 {
		t.Errorf("%v s while it lasts, want 2", got)
	}
	c.follow(true, at(14))
	c.follow(true, at(20))
	if got := c.unownedSeconds(at(100)); got != 4 {
		t.Errorf("%v s, want 4", got)
	}
}
