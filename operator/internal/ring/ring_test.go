package ring_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/operator/internal/ring"
)

func TestHashAndSelectorAreThoseOfTheAPIServer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: rapid.String().Draw(t, "namespace"), UID: types.UID(rapid.String().Draw(t, "uid"))}}
		for field, value := range map[string]string{ring.FieldNamespace: obj.Namespace, ring.FieldUID: string(obj.UID)} {
			hash := ring.HashOf(value)
			a, b := ring.Hash(rapid.Uint64().Draw(t, "a")), ring.Hash(rapid.Uint64().Draw(t, "b"))
			// Edges are where mistakes are.
			for _, span := range []ring.Span{
				{First: min(a, b), Last: max(a, b)}, {First: hash, Last: hash}, {First: 0, Last: hash}, {First: hash, Last: ring.MaxHash}, {Last: ring.MaxHash},
			} {
				if matched := matches(t, field, span, obj); matched != span.Contains(hash) {
					t.Errorf("%s of %s: the API server says %t of %v", hash, field, matched, span)
				}
			}
		}
	})
}

// matches asks the function of the API server, which gets what is read from the text of the selector.
func matches(t *rapid.T, field string, span ring.Span, obj *corev1.ConfigMap) bool {
	var key, start, end string
	text := ring.Selector(field, []ring.Span{span})
	if _, err := fmt.Sscanf(text, "shardRange(%s '%18s', '%s", &key, &start, &end); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	matched, err := sharding.NewSelector(sharding.ShardRangeRequirement{Key: key[:len(key)-1], Start: start, End: end[:len(end)-2]}).Matches(obj)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return matched
}

func TestTableIsReadAsItWasWritten(t *testing.T) {
	want := ring.Table{
		Generation: 3, Barrier: []string{"b"},
		Ranges:  []ring.Range{{Owner: "a", Epoch: 2, Since: 1}, {First: ring.MaxHash - 1, Owner: "a", Next: "b", Known: true, Epoch: 1, Since: 3}},
		Weights: []ring.Bucket{{Span: ring.Span{First: 1 << 63, Last: ring.MaxHash}, Objects: 7}},
		Notes:   []ring.Note{{Span: ring.Span{First: 1, Last: 2}, To: "b", Since: 3, Done: []string{"something"}}},
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got ring.Table
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestBucketsCoverTheirSpanHoldEveryObjectAndKeepWhatHasOneHashTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hashes := rapid.SliceOfN(rapid.Uint64Range(100, 130), 0, 200).Draw(t, "hashes")
		slices.Sort(hashes)
		sorted := make([]ring.Hash, 0, len(hashes))
		for _, h := range hashes {
			sorted = append(sorted, ring.Hash(h))
		}
		parts := rapid.IntRange(1, 12).Draw(t, "parts")
		span := ring.Span{First: 100, Last: ring.Hash(rapid.Uint64Range(130, math.MaxUint64).Draw(t, "last"))}
		buckets := ring.Weigh(span, sorted, parts)
		next, objects, largest := span.First, 0, 0
		for i, b := range buckets {
			if b.First != next {
				t.Fatalf("bucket %d begins at %s, not at %s", i, b.First, next)
			}
			if i > 0 && !slices.Contains(sorted, b.First) {
				t.Errorf("bucket %d begins where no object is", i)
			}
			in := 0
			for _, h := range sorted {
				if b.Contains(h) {
					in++
				}
			}
			if in != b.Objects {
				t.Errorf("bucket %d holds %d objects and says %d", i, in, b.Objects)
			}
			next, objects, largest = b.Last+1, objects+in, max(largest, in)
		}
		if last := buckets[len(buckets)-1].Last; last != span.Last || objects != len(hashes) || len(buckets) > parts {
			t.Errorf("%d buckets of %d up to %s, with %d objects of %d", len(buckets), parts, last, objects, len(hashes))
		}
		same, most := 0, 0
		for i, h := range sorted {
			if same++; i > 0 && h != sorted[i-1] {
				same = 1
			}
			most = max(most, same)
		}
		if even := (len(hashes) + parts - 1) / parts; largest > even+most {
			t.Errorf("a bucket holds %d of %d objects in %d parts, of which no more than %d have one hash", largest, len(hashes), parts, most)
		}
	})
}

func TestARangeIsBegunByItsNewOwnerWhenTheOldOneHasEndedItsLastWorkInIt(t *testing.T) {
	w := newWorld(1000)
	a := w.join("a", "v1", 1)
	w.settle()
	if owned := a.holder.Owned(); !slices.Equal(owned, []ring.Span{{Last: ring.MaxHash}}) {
		t.Fatalf("one replica owns %v, not all", owned)
	}
	hash := w.hashes[len(w.hashes)-1]
	if !a.holder.Begin(hash) {
		t.Fatal("a can't begin what it owns")
	}
	b := w.join("b", "v1", 1)
	w.settle()
	if r := w.table.Find(hash); r.Owner != "a" {
		t.Fatalf("a works on %s, and its range is %+v", hash, r)
	}
	if r := w.table.Find(hash); r.Next != "" && (a.holder.Begin(hash) || b.holder.Begin(hash)) {
		t.Errorf("%+v: work begins in a range that moves", r)
	}
	a.holder.End(hash)
	w.settle()
	if got := w.share("b"); math.Abs(got-0.5) > 0.1 {
		t.Errorf("b has %.2f of the objects, not half", got)
	}
	if moving := w.table.Moving(); moving > 0 {
		t.Errorf("%d ranges still move", moving)
	}
}

func TestNamesThatDifferInTheirLastLettersAreSharedOut(t *testing.T) {
	w := &world{members: map[string]*replica{}}
	for i := range 300 {
		for range 10 {
			w.hashes = append(w.hashes, ring.HashOf(fmt.Sprintf("tenant-%03d", i)))
		}
	}
	slices.Sort(w.hashes)
	for i := range 4 {
		w.join(fmt.Sprint("r", i), "v1", 1)
		w.settle()
	}
	for name := range w.members {
		if share := w.share(name); math.Abs(share-0.25) > 0.05 {
			t.Errorf("%s has %.2f of the objects, not a quarter", name, share)
		}
	}
}

func TestReplicasForWhichThereIsNoNamespaceLeftAreTold(t *testing.T) {
	for namespaces := range 4 {
		for replicas := 1; replicas < 7; replicas++ {
			w := &world{members: map[string]*replica{}}
			for i := range 15 * namespaces {
				w.hashes = append(w.hashes, ring.HashOf(fmt.Sprint("tenant-", i%namespaces)))
			}
			slices.Sort(w.hashes)
			for i := range replicas {
				w.join(fmt.Sprint("r", i), "v1", 1)
			}
			w.settle()
			want := max(replicas-namespaces, 0)
			if namespaces == 0 {
				want = 0 // Nobody lacks anything.
			}
			idle := w.table.Idle(w.told())
			if len(idle) != want {
				t.Errorf("%d namespaces leave %q of %d replicas idle", namespaces, idle, replicas)
			}
			for _, name := range idle {
				if w.share(name) > 0 {
					t.Errorf("%d namespaces and %d replicas: %s has objects", namespaces, replicas, name)
				}
			}
		}
	}
}

// A table that is as it should be by chance is not written again when it becomes known where the objects are.
func TestATableIsWeighedByWhatItsMembersSaySinceItWasWritten(t *testing.T) {
	table := ring.Table{
		Generation: 5, Ranges: []ring.Range{{Owner: "a", Epoch: 1, Since: 5}, {First: 1 << 63, Owner: "b", Epoch: 1, Since: 5}},
		Weights: []ring.Bucket{{Span: ring.Span{First: 0, Last: 1<<63 - 1}, Objects: 7}},
	}
	members := map[string]ring.Member{"b": {Weights: []ring.Bucket{{Span: ring.Span{First: 1 << 63, Last: ring.MaxHash}, Objects: 3}}}}
	weighed := table.Weighed(members)
	if a, b := weighed.Objects(0), weighed.Objects(1); a != 7 || b != 3 {
		t.Errorf("a has %d objects, and b %d, want 7 and 3", a, b)
	}
	if table.Objects(1) != 0 {
		t.Error("the table itself has changed")
	}
}

func TestARangePassesOnByAConfirmationOfItsOwnMoveOnly(t *testing.T) {
	table := ring.Table{Generation: 5, Ranges: []ring.Range{{Owner: "a", Next: "b", Known: true, Epoch: 1, Since: 5}}}
	of := func(life string, since int64, busy ...ring.Hash) ring.Confirmation {
		given := ring.Given{Move: ring.Move{Span: ring.Span{Last: ring.MaxHash}, Since: since}, Done: []string{"done"}}
		return ring.Confirmation{Life: life, Generation: 9, Busy: busy, Given: []ring.Given{given}}
	}
	for _, tt := range []struct {
		name      string
		confirmed ring.Confirmation
		want      string
	}{
		{"of this move", of("new", 5), "b"},
		{"of an earlier one", of("new", 4), "a"},
		{"of a table that was deleted", of("old", 5), "a"},
		{"with work that goes on", of("new", 5, 7), "a"},
		{"of the table alone", ring.Confirmation{Life: "new", Generation: 5}, "a"},
		{"of nothing", ring.Confirmation{}, "a"},
	} {
		next, _ := table.Step("new", map[string]ring.Member{"a": {Confirmed: tt.confirmed}, "b": {}}, nil)
		if got := next.Find(7).Owner; got != tt.want {
			t.Errorf("a confirmation %s: %s owns the range", tt.name, got)
		}
		if notes := next.NotesTo("b"); tt.want == "b" != (len(notes) == 1 && notes[0].Done[0] == "done") {
			t.Errorf("a confirmation %s: b is told %+v", tt.name, notes)
		}
	}
}

func TestAReplicaThatHasGivenUpOwnsNothingWhateverItHears(t *testing.T) {
	h := ring.NewHolder("a", nil)
	table := ring.Table{Generation: 1, Ranges: []ring.Range{{Owner: "a"}}}
	h.Apply("life", table)
	if !h.Begin(7) {
		t.Fatal("a can't begin what it owns")
	}
	h.Close()
	table.Generation++
	h.Apply("life", table)
	if h.Begin(7) || len(h.Owned()) > 0 {
		t.Errorf("it owns %v", h.Owned())
	}
	if diff := cmp.Diff(ring.Confirmation{Life: "life", Generation: 2, Busy: []ring.Hash{7}}, h.Confirmation()); diff != "" || h.Idle() {
		t.Errorf("what goes on is not told\n%s", diff)
	}
	h.End(7)
	if !h.Idle() {
		t.Error("it is not idle when its work has ended")
	}
}

func TestCapacityIsWhatAReplicaGetsMoreOf(t *testing.T) {
	w := newWorld(2000)
	w.join("small", "v1", 1)
	w.join("large", "v1", 3)
	w.settle()
	if share := w.share("large"); math.Abs(share-0.75) > 0.08 {
		t.Errorf("who can carry three times as much has %.2f of the objects", share)
	}
}

func TestFewObjectsMoveWhenReplicasComeAndGo(t *testing.T) {
	w := newWorld(4000)
	for i := range 10 {
		before := w.owners()
		w.join(fmt.Sprint("r", i), "v1", 1)
		w.settle()
		if moved, due := w.moved(before), float64(len(w.hashes))/float64(i+1); i > 0 && float64(moved) > 1.15*due {
			t.Errorf("%d objects moved to replica %d, whose due are %.0f", moved, i, due)
		}
	}
	for i := range 7 {
		before, lost := w.owners(), w.share(fmt.Sprint("r", i))
		w.leave(fmt.Sprint("r", i))
		w.settle()
		if moved := float64(w.moved(before)) / float64(len(w.hashes)); moved > lost+0.05 {
			t.Errorf("%.2f of the objects moved when %.2f had lost their owner", moved, lost)
		}
	}
	if ranges := len(w.table.Ranges); ranges > 40 {
		t.Errorf("there are %d ranges for 3 replicas", ranges)
	}
}

func TestARollingUpdateMovesEachObjectTwiceAtMost(t *testing.T) {
	for _, replicas := range []int{1, 3, 10} {
		w := newWorld(4000)
		for i := range replicas {
			w.join(fmt.Sprint("old", i), "v1", 1)
		}
		w.settle()
		moves := map[ring.Hash]int{}
		count := func(change func()) {
			before := w.owners()
			change()
			w.settle()
			for h, owner := range w.owners() {
				if owner != before[h] {
					moves[h]++
				}
			}
		}
		for i := range replicas {
			count(func() { w.join(fmt.Sprint("new", i), "v2", 1) })
			count(func() { w.members[fmt.Sprint("old", i)].leaving = true })
			count(func() { w.leave(fmt.Sprint("old", i)) })
		}
		for h, n := range moves {
			if n > 2 {
				t.Fatalf("%d replicas: object %s moved %d times", replicas, h, n)
			}
		}
		for name := range w.members {
			if share := w.share(name); math.Abs(share-1/float64(replicas)) > 0.15/float64(replicas) {
				t.Errorf("%d replicas: %s has %.3f of the objects", replicas, name, share)
			}
		}
	}
}

func TestPartsSayWhoHasHowMuchOfATable(t *testing.T) {
	table := ring.Table{Ranges: []ring.Range{{Owner: "b"}, {First: 100, Owner: "a", Next: "b"}, {First: 200}, {First: 300, Owner: "b"}}}
	want := []ring.Part{{Ranges: 1}, {Member: "a", Ranges: 1, Moving: 1}, {Member: "b", Ranges: 2}}
	if diff := cmp.Diff(want, table.Parts()); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
}

func TestAMemberHoldsWhatItOwnsGivesUpAndIsToGet(t *testing.T) {
	table := ring.Table{Ranges: []ring.Range{
		{Owner: "a"}, {First: 10, Owner: "a", Next: "b", Known: true}, {First: 20, Owner: "b", Next: "a"}, {First: 30, Owner: "b"}, {First: 40, Owner: "a"},
	}}
	for member, want := range map[string][2][]ring.Span{
		"a": {{{First: 0, Last: 9}, {First: 40, Last: ring.MaxHash}}, {{First: 0, Last: 29}, {First: 40, Last: ring.MaxHash}}},
		"b": {{{First: 20, Last: 39}}, {{First: 10, Last: 39}}},
		"c": {},
	} {
		h := ring.NewHolder(member, nil)
		h.Apply("life", table)
		giveUp(h)
		if diff := cmp.Diff(want, [2][]ring.Span{h.Owned(), h.Held()}); diff != "" {
			t.Errorf("%s owns and holds\n%s", member, diff)
		}
	}
}

func TestSpansAreCompared(t *testing.T) {
	low, middle, high := ring.Span{First: 0, Last: 9}, ring.Span{First: 5, Last: 25}, ring.Span{First: 20, Last: 30}
	tests := []struct {
		name               string
		a, b, common       []ring.Span
		aCoversB, bCoversA bool
	}{
		{"nothing and nothing", nil, nil, nil, true, true},
		{"something and nothing", []ring.Span{low}, nil, nil, true, false},
		{"two and one over both", []ring.Span{low, high}, []ring.Span{middle}, []ring.Span{{First: 5, Last: 9}, {First: 20, Last: 25}}, false, false},
		{"two and one of them", []ring.Span{low, high}, []ring.Span{high}, []ring.Span{high}, true, false},
		{"one within another one", []ring.Span{{First: 1, Last: 2}}, []ring.Span{low}, []ring.Span{{First: 1, Last: 2}}, false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.common, ring.Intersection(tt.a, tt.b)); diff != "" {
				t.Errorf("in common\n%s", diff)
			}
			if a, b := ring.Covers(tt.a, tt.b), ring.Covers(tt.b, tt.a); a != tt.aCoversB || b != tt.bCoversA {
				t.Errorf("covers: %t and %t, want %t and %t", a, b, tt.aCoversB, tt.bCoversA)
			}
		})
	}
}

func TestAMemberThatIsAboutToEndGivesEverythingAwayAndGetsNothing(t *testing.T) {
	w := newWorld(1000)
	a, b := w.join("a", "v1", 1), w.join("b", "v1", 1)
	w.settle()
	// The last one that is left keeps what it has: nobody else is there.
	a.leaving, b.leaving = true, true
	before := w.owners()
	w.settle()
	if moved := w.moved(before); moved > 0 {
		t.Errorf("%d objects moved among members that are all about to end", moved)
	}
	b.leaving = false
	w.settle()
	if share := w.share("b"); share != 1 {
		t.Errorf("who stays has %.2f of the objects", share)
	}
	w.join("c", "v1", 1)
	w.settle()
	if share := w.share("a"); share > 0 {
		t.Errorf("who is about to end has got %.2f of the objects", share)
	}
}

func TestARangeStaysWithItsOwnerWhenWhoIsToGetItIsAboutToEnd(t *testing.T) {
	table := ring.Table{Generation: 5, Ranges: []ring.Range{{Owner: "a", Next: "b", Known: true, Epoch: 1, Since: 5}}}
	next, changed := table.Step("life", map[string]ring.Member{"a": {}, "b": {Leaving: true}}, nil)
	if r := next.Find(7); !changed || r.Owner != "a" || r.Next != "" || r.Known {
		t.Errorf("the range is %+v", r)
	}
}

func TestWhoIsToGetARangeHasListedItBeforeItsOwnerGivesItUp(t *testing.T) {
	all := []ring.Span{{Last: ring.MaxHash}}
	table := ring.Table{Generation: 5, Ranges: []ring.Range{{Owner: "a", Next: "b", Epoch: 1, Since: 5}}}
	for _, tt := range []struct {
		name      string
		confirmed ring.Confirmation
		want      bool
	}{
		{"all", ring.Confirmation{Life: "new", Generation: 5, Listed: all}, true},
		{"two parts of it", ring.Confirmation{Life: "new", Generation: 5, Listed: []ring.Span{{Last: 4}, {First: 6, Last: ring.MaxHash}}}, false},
		{"all, by an earlier table", ring.Confirmation{Life: "new", Generation: 4, Listed: all}, false},
		{"all, by a table that was deleted", ring.Confirmation{Life: "old", Generation: 9, Listed: all}, false},
		{"nothing", ring.Confirmation{Life: "new", Generation: 5}, false},
	} {
		next, changed := table.Step("new", map[string]ring.Member{"a": {}, "b": {Confirmed: tt.confirmed}}, nil)
		if r := next.Find(7); r.Known != tt.want || changed != tt.want || tt.want && r.Since != 6 {
			t.Errorf("b has listed %s: the range is %+v", tt.name, r)
		}
	}
}

func TestWhatAFormerOwnerHasDoneIsKeptUntilTheNextOneFollowsTheTable(t *testing.T) {
	table := ring.Table{Generation: 6, Ranges: []ring.Range{{Owner: "b", Epoch: 2, Since: 6}}, Notes: []ring.Note{
		{Span: ring.Span{Last: ring.MaxHash}, To: "b", Since: 6, Done: []string{"done"}}, {Span: ring.Span{Last: ring.MaxHash}, To: "gone", Since: 6, Done: []string{"done"}},
	}}
	for generation, want := range map[int64]int{5: 1, 6: 0, 7: 0} {
		members := map[string]ring.Member{"b": {Confirmed: ring.Confirmation{Life: "life", Generation: generation}}, "c": {}}
		next, changed := table.Step("life", members, nil)
		if !changed || len(next.Notes) != want {
			t.Errorf("b follows table %d: the notes are %+v", generation, next.Notes)
		}
	}
}

// longTexts say of many things that they were done, as much of each as there can be to say.
func longTexts() []string { return slices.Repeat([]string{strings.Repeat("x", 380)}, 700) }

// jsonOf is how many bytes a value takes.
func jsonOf(t *testing.T, value any) int {
	t.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return len(encoded)
}

func TestNotesOfATableAreLimited(t *testing.T) {
	done := longTexts()
	given := func(first, last ring.Hash) ring.Given {
		return ring.Given{Move: ring.Move{Span: ring.Span{First: first, Last: last}, Since: 5}, Done: done}
	}
	table := ring.Table{Generation: 5, Ranges: []ring.Range{
		{Owner: "a", Next: "b", Known: true, Since: 5}, {First: 10, Owner: "c", Next: "b", Known: true, Since: 5},
	}}
	next, _ := table.Step("life", map[string]ring.Member{
		"a": {Confirmed: ring.Confirmation{Life: "life", Generation: 5, Given: []ring.Given{given(0, 9)}}},
		"b": {},
		"c": {Confirmed: ring.Confirmation{Life: "life", Generation: 5, Given: []ring.Given{given(10, ring.MaxHash)}}},
	}, nil)
	told := 0
	for _, n := range next.NotesTo("b") {
		told += len(n.Done)
	}
	if told < 100 || next.Find(0).Owner != "b" || next.Find(10).Owner != "b" {
		t.Errorf("%d are told, and the ranges are %+v", told, next.Ranges)
	}
	if bytes := jsonOf(t, next); bytes > annotations/2 {
		t.Errorf("the table takes %d bytes", bytes)
	}
}

// annotations is how many bytes those of an object may have.
const annotations = 256 << 10

func TestWhatAReplicaTellsToHaveDoneIsLimited(t *testing.T) {
	h := ring.NewHolder("a", nil)
	h.Apply("life", ring.Table{Generation: 5, Ranges: []ring.Range{
		{Owner: "a", Next: "b", Known: true, Since: 5}, {First: 10, Owner: "a", Next: "c", Known: true, Since: 5}, {First: 20, Owner: "a", Next: "b", Known: true, Since: 5},
	}})
	short := []string{"short"}
	for i, done := range [][]string{short, longTexts(), longTexts()} {
		move := h.Leaving()[0]
		h.GiveUp(move)
		h.Give(move, done)
		if given := h.Confirmation().Given; len(given) != i+1 || i < 2 && len(given[i].Done) == 0 {
			t.Errorf("it confirms %+v", given)
		}
	}
	if bytes := jsonOf(t, h.Confirmation()); bytes > annotations/4 {
		t.Errorf("what it confirms takes %d bytes", bytes)
	}
}

func TestAHolderWorksInWhatItIsToGiveUpUntilItDoesAndAgainWhenItIsLeftToIt(t *testing.T) {
	h := ring.NewHolder("a", nil)
	table := ring.Table{Generation: 5, Ranges: []ring.Range{{Owner: "a", Next: "b", Known: true, Since: 5}}}
	h.Apply("life", table)
	moves := h.Leaving()
	if !h.Owns(7) || len(moves) != 1 || h.Resume(7) {
		t.Fatalf("it owns %v, and is to give up %v", h.Owned(), moves)
	}
	h.GiveUp(moves[0])
	if h.Begin(7) || !h.Resume(7) || len(h.Leaving()) > 0 || len(h.Confirmation().Given) > 0 {
		t.Errorf("it owns %v, is to give up %v and confirms %+v", h.Owned(), h.Leaving(), h.Confirmation())
	}
	h.Give(moves[0], []string{"done"})
	if h.Resume(7) || h.IdleIn(moves[0].Span) || len(h.Confirmation().Given) != 1 {
		t.Errorf("it resumes what it has given up, or confirms %+v", h.Confirmation())
	}
	table.Generation = 6
	table.Ranges[0] = ring.Range{Owner: "a", Since: 5}
	h.Apply("life", table)
	if !h.Owns(7) || len(h.Confirmation().Given) > 0 {
		t.Errorf("it owns %v and confirms %+v", h.Owned(), h.Confirmation())
	}
}

// In a rolling update nobody waits until everything has moved: the next replica comes when the one before has gone.
func TestARollingUpdateThatWaitsForNothingMovesEachObjectTwiceAtMost(t *testing.T) {
	for _, replicas := range []int{1, 2, 3, 5, 10} {
		for steps := range 8 {
			w := &world{members: map[string]*replica{}}
			for i := range 100 {
				h := ring.HashOf(fmt.Sprint("tenant-", i))
				w.hashes = append(w.hashes, h, h)
			}
			slices.Sort(w.hashes)
			for i := range replicas {
				w.join(fmt.Sprint("old", i), "v1", 1)
			}
			w.settle()
			moves := map[ring.Hash]int{}
			step := func() {
				before := w.owners()
				w.step()
				for h, owner := range w.owners() {
					if owner != before[h] {
						moves[h]++
					}
				}
			}
			for i := range replicas {
				old := fmt.Sprint("old", i)
				w.join(fmt.Sprint("new", i), "v2", 1)
				for range steps {
					step()
				}
				w.members[old].leaving = true
				for step(); w.share(old) > 0; step() {
				}
				w.leave(old)
			}
			for range 100 {
				step()
			}
			for h, n := range moves {
				if n > 2 {
					t.Fatalf("%d replicas, %d steps: object %s moved %d times", replicas, steps, h, n)
				}
			}
		}
	}
}
