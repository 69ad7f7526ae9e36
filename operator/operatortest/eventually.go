package operatortest

import (
	"testing"
	"time"
)

// Condition is something to wait for: it holds when the function returns true, or no error. The error says what is
// missing still.
type Condition interface {
	func() bool | func() error
}

const (
	// hangLimit is when a test that waits for something gives up. It finds tests that hang and measures nothing.
	hangLimit = 5 * time.Minute
	// firstPause is the pause between two looks at a condition, of which each is half as long again as the one before, up to longestPause:
	// what takes long is not asked for all the time, which would make it take longer.
	firstPause, longestPause = 10 * time.Millisecond, 200 * time.Millisecond
)

// longer is the pause after a pause.
func longer(pause time.Duration) time.Duration { return min(pause*3/2, longestPause) }

// Eventually waits until a condition holds, of which what tells in words. A test that waits for five minutes ends
// as failed.
func Eventually[C Condition](t testing.TB, what string, condition C) {
	t.Helper()
	deadline := time.After(hangLimit)
	for pause := firstPause; ; pause = longer(pause) {
		holds, missing := check(condition)
		if holds {
			return
		}
		select {
		case <-time.After(pause):
		case <-deadline:
			if missing != nil {
				t.Fatalf("gave up waiting until %s: %v", what, missing)
			}
			t.Fatalf("gave up waiting until %s", what)
		}
	}
}

func check(condition any) (holds bool, missing error) {
	switch c := condition.(type) {
	case func() bool:
		return c(), nil
	case func() error:
		missing = c()
		return missing == nil, missing
	}
	return false, nil
}
