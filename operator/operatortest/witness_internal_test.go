package operatortest

import (
	"fmt"
	"testing"
)

// Writes of several workers are answered in any order: only what is set back after a later write counts.
func TestAnAnswerThatWasOvertakenSetsNothingBack(t *testing.T) {
	write := Request{Verb: "patch", Version: "v1", Resource: "configmaps", Namespace: "n", Name: "a"}
	answer := func(version int, data string) []byte {
		return fmt.Appendf(nil, `{"metadata":{"name":"a","uid":"u","resourceVersion":"%d"},"data":{"x":%q}}`, version, data)
	}
	w := newWitness("n")
	for _, a := range [][]byte{answer(5, "one"), answer(7, "two"), answer(6, "one")} {
		w.enter(write, a)
	}
	if deeds := w.seen(); len(deeds) > 0 {
		t.Errorf("what was answered late counts as %v", deeds)
	}
	w.enter(write, answer(8, "one"))
	if deeds := w.seen(); len(deeds) != 1 {
		t.Errorf("what was set back counts as %v", deeds)
	}
}
