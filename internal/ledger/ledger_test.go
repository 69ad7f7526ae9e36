package ledger_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/internal/ledger"
)

var start = time.Unix(1_000_000, 0)

func TestNeverMoreThanTheLimitIsChargedInItsTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 4).Draw(t, "max")
		per := time.Duration(rapid.IntRange(1, 60).Draw(t, "per")) * time.Second
		book, now := ledger.Book{}, start
		charged := map[string]time.Time{}
		for range rapid.IntRange(1, 60).Draw(t, "charges") {
			now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "pause")) * time.Second)
			var ids []string
			for _, i := range rapid.SliceOfN(rapid.IntRange(0, 9), 1, 3).Draw(t, "ids") {
				ids = append(ids, fmt.Sprint(i))
			}
			c := ledger.Charge{Guard: "g", IDs: ids, Max: most, Per: per}
			answer, changed := book.Charge(c, now)
			last := func(at time.Time) bool { return at.Add(per).After(now) }
			fresh := []string{}
			for _, id := range ids {
				if !last(charged[id]) && !slices.Contains(fresh, id) {
					fresh = append(fresh, id)
				}
			}
			counted := 0
			for _, at := range charged {
				if last(at) {
					counted++
				}
			}
			if want := len(fresh) == 0 || counted+len(fresh) <= most; answer.Charged != want || changed != (want && len(fresh) > 0) {
				t.Fatalf("charged %t, changed %t with %d of %d charged and %v new", answer.Charged, changed, counted, most, fresh)
			}
			if answer.Charged {
				for _, id := range fresh {
					charged[id] = now
				}
				continue
			}
			if (answer.After == 0) != (len(slices.Compact(slices.Sorted(slices.Values(ids)))) > most) {
				t.Fatalf("it can be charged after %s, for %q and %d", answer.After, ids, most)
			}
			if answer.After > 0 {
				var later ledger.Book
				text, err := json.Marshal(book)
				if err != nil || json.Unmarshal(text, &later) != nil {
					t.Fatal(err)
				}
				at, again := now, answer
				for range 10 {
					if !again.Charged {
						at = at.Add(again.After)
						again, _ = later.Charge(c, at)
					}
				}
				if !again.Charged {
					t.Fatalf("it is still not charged %s later", at.Sub(now))
				}
			}
		}
	})
}

func TestObjectsThatAreGoneDoNotLowerAPercentage(t *testing.T) {
	book := ledger.Book{}
	charge := func(id string, of int, after time.Duration) bool {
		answer, _ := book.Charge(ledger.Charge{Guard: "g", Scope: "f", IDs: []string{id}, Percent: 20, Of: of, Per: time.Hour}, start.Add(after))
		return answer.Charged
	}
	for i, want := range []bool{true, true, false} {
		if got := charge(fmt.Sprint(i), 10-i*5, 0); got != want {
			t.Errorf("object %d of ten: charged %t", i, got)
		}
	}
	if !charge("3", 1, 2*time.Hour) || charge("4", 1, 2*time.Hour) {
		t.Error("after the time it is one at least, of those that are left")
	}
}

func TestAPercentageIsBounded(t *testing.T) {
	book := ledger.Book{}
	for i := range ledger.MaxCharges + 1 {
		answer, _ := book.Charge(ledger.Charge{Guard: "g", IDs: []string{fmt.Sprint(i)}, Percent: 100, Of: 1 << 20, Per: time.Hour}, start)
		if answer.Charged != (i < ledger.MaxCharges) {
			t.Fatalf("charge %d: %v", i, answer)
		}
	}
	if text, err := json.Marshal(book); err != nil || len(text) > 50_000 {
		t.Errorf("it takes %d bytes, %v", len(text), err)
	}
}

func TestForgivenIsOneGuardOrAll(t *testing.T) {
	book := func() ledger.Book {
		b := ledger.Book{}
		for _, c := range []ledger.Charge{{Guard: "a", Max: 1}, {Guard: "ab", Max: 1}, {Guard: "a", Percent: 50, Scope: "f", Of: 4}, {Guard: "a", Percent: 50, Scope: "g", Of: 4}} {
			c.IDs, c.Per = []string{"1"}, time.Hour
			b.Charge(c, start)
		}
		return b
	}
	for guard, want := range map[string][]string{"a": {"a"}, "ab": {"ab"}, "": {"a", "ab"}, "c": nil} {
		b := book()
		before := len(b)
		if diff := cmp.Diff(want, b.Forgive(guard)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", guard, diff)
		}
		if got, want := before-len(b), map[string]int{"a": 3, "ab": 1, "": 4}[guard]; got != want {
			t.Errorf("%q removed %d accounts, want %d", guard, got, want)
		}
	}
}
