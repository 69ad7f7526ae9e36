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
	hangLimit = 90 * time.Second
	// lookPeriod is the pause between two looks at a condition.
	lookPeriod = 10 * time.Millisecond
)

// Eventually waits until a condition holds, of which what tells in words. A test that waits for a minute and a half ends
// as failed.
func Eventually[C Condition](t testing.TB, what string, condition C) {
	t.Helper()
	deadline := time.After(hangLimit)
	look := time.NewTicker(lookPeriod)
	defer look.Stop()
	for {
		holds, missing := check(condition)
		if holds {
			return
		}
		select {
		case <-look.C:
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
