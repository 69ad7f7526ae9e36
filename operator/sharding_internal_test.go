package operator

import (
	"testing"
	"time"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/internal/ring"
)

func TestWhatAReplicaGetsAndGivesUpIsCounted(t *testing.T) {
	left, right, all := ring.Span{Last: 9}, ring.Span{First: 10, Last: 20}, ring.Span{Last: 20}
	tests := []struct {
		name         string
		before, now  []ring.Span
		gained, lost int64
	}{
		{"the first part", nil, []ring.Span{left}, 1, 0},
		{"one more", []ring.Span{left}, []ring.Span{all}, 1, 0},
		{"one less", []ring.Span{all}, []ring.Span{right}, 0, 1},
		{"another one", []ring.Span{left}, []ring.Span{right}, 1, 1},
		{"none any more", []ring.Span{left}, nil, 0, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var c shardCounts
			c.note(tt.before, tt.now)
			if c.gained.Load() != tt.gained || c.lost.Load() != tt.lost || c.ranges.Load() != int64(len(tt.now)) {
				t.Errorf("gained %d times, lost %d times, %d ranges; want %d, %d and %d", c.gained.Load(), c.lost.Load(), c.ranges.Load(), tt.gained, tt.lost, len(tt.now))
			}
		})
	}
}

func TestTimeWithoutAnOwnerIsCountedAlsoWhileARangeIsGivenUp(t *testing.T) {
	start := time.Now()
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	table := func(ranges ...ring.Range) ring.Table { return ring.Table{Ranges: ranges} }
	var c shardCounts
	c.follow(table(ring.Range{Owner: "a"}), at(0))
	c.follow(table(ring.Range{Owner: "a"}, ring.Range{First: 10}), at(10))
	c.follow(table(ring.Range{Owner: "a"}, ring.Range{First: 10, Owner: "a", Next: "b", Known: true}), at(11))
	if got := c.unownedSeconds(at(12)); got != 2 {
		t.Errorf("%v s while it lasts, want 2", got)
	}
	c.follow(table(ring.Range{Owner: "a"}, ring.Range{First: 10, Owner: "b"}), at(14))
	c.follow(table(ring.Range{Owner: "a", Next: "b"}, ring.Range{First: 10, Owner: "b"}), at(20))
	if got := c.unownedSeconds(at(100)); got != 4 {
		t.Errorf("%v s, want 4", got)
	}
}

func TestObjectsLieByTheirNamespacesAndWithoutOneByTheirNames(t *testing.T) {
	for key, want := range map[informer.Key]string{{Namespace: "shop", Name: "a"}: "shop", {Namespace: "shop", Name: "b"}: "shop", {Name: "a"}: "a"} {
		if got := hashOf(key); got != ring.HashOf(want) {
			t.Errorf("%s lies at %s, want that of %q", key, got, want)
		}
	}
}
