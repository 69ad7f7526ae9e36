package statusresource

import (
	"fmt"
	"maps"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/internal/statusmap"
)

var (
	kinds = rapid.SampledFrom([]string{"Ready", "Reconciling", "Theirs", "Others"})
	words = rapid.SampledFrom([]string{"", "a", "b"})
)

// drawn is a status that may be.
func drawn(t *rapid.T, what string) map[string]any {
	status := map[string]any{}
	for _, name := range []string{"url", "page"} {
		if rapid.Bool().Draw(t, what+" has "+name) {
			status[name] = words.Draw(t, what+" "+name)
		}
	}
	if rapid.Bool().Draw(t, what+" has inner") {
		status["inner"] = map[string]any{"x": words.Draw(t, what+" x"), words.Draw(t, what+" y"): "y"}
	}
	list := []any{}
	for _, kind := range rapid.SliceOfNDistinct(kinds, 0, 4, rapid.ID[string]).Draw(t, what+" conditions") {
		list = append(list, map[string]any{
			"type": kind, "status": rapid.SampledFrom([]string{"True", "False"}).Draw(t, what+" "+kind), "message": words.Draw(t, what+" says of "+kind),
			transition: fmt.Sprintf("2020-01-0%dT00:00:00Z", rapid.IntRange(1, 9).Draw(t, what+" since")),
		})
	}
	status["conditions"] = list
	return status
}

// applied is what the API server makes of a merge patch (RFC 7386).
func applied(object, patch map[string]any) map[string]any {
	object = maps.Clone(object)
	for k, v := range patch {
		inner, isMap := v.(map[string]any)
		was, _ := object[k].(map[string]any)
		switch {
		case v == nil:
			delete(object, k)
		case isMap && was == nil:
			object[k] = applied(map[string]any{}, inner)
		case isMap:
			object[k] = applied(was, inner)
		default:
			object[k] = v
		}
	}
	return object
}

// What changes is as it should be afterwards, with the right time, all else is as it was, and nothing is left to do.
func TestAPatchMakesTheChangeAndNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := change{before: drawn(t, "before"), after: drawn(t, "after")}
		result := applied(c.before, c.patch(metav1.NewTime(time.Unix(0, 0))))
		if left := (&change{before: result, after: c.after}); !left.empty() {
			t.Errorf("left to do: %v, %v", left.fields(), left.conditions())
		}
		was, _ := statusmap.Conditions(c.before)
		is, _ := statusmap.Conditions(result)
		for kind := range is {
			same := was[kind] != nil && was[kind]["status"] == is[kind]["status"]
			if same && was[kind][transition] != is[kind][transition] || is[kind][transition] == nil {
				t.Errorf("%s has another time: %v, and was %v", kind, is[kind], was[kind])
			}
		}
	})
}

// An error has a text of its own in each retry, and each write wakes the object.
func TestAnErrorThatIsAlwaysAnotherOneIsWrittenOnceInAWhile(t *testing.T) {
	for name, tc := range map[string]struct {
		text   func(int) string
		period time.Duration
	}{
		"numbers": {func(n int) string { return fmt.Sprintf("attempt %d of 7f%x failed", n, n) }, NumberPeriod},
		"words":   {func(n int) string { return fmt.Sprintf("failed as %c", 'g'+n%20) }, MessagePeriod},
	} {
		t.Run(name, func(t *testing.T) {
			now, writes := time.Unix(0, 0), 0
			m := messages{now: func() time.Time { return now }}
			status := map[string]any{}
			for n := range 3600 {
				ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: ReasonRetrying, Message: tc.text(n), ObservedGeneration: 1}
				c := change{before: status, after: map[string]any{"conditions": status["conditions"]}}
				if err := c.set(m.keep("uid", status, []metav1.Condition{ready}), nil); err != nil {
					t.Fatal(err)
				}
				if !c.empty() {
					writes++
					m.wrote("uid")
					status = c.after
				}
				now = now.Add(time.Second)
			}
			if want := int(time.Hour / tc.period); writes != want {
				t.Errorf("%d writes in an hour, want %d", writes, want)
			}
			now = now.Add(NumberPeriod)
			if m.wrote("another"); len(m.last) != 1 {
				t.Errorf("it remembers %d objects for ever", len(m.last))
			}
		})
	}
}
