package operatortest

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// leakPatience is how long goroutines have to end after the last test.
const leakPatience = 30 * time.Second

// VerifyTestMain runs the tests of a package and ends the process, as goleak.VerifyTestMain does: with exit code 1 when
// goroutines are left. Clients keep their connections to the shared control plane for later requests, and a request that
// was cancelled gives its connection back a moment later; those are closed and do not count.
//
//	func TestMain(m *testing.M) { operatortest.VerifyTestMain(m) }
func VerifyTestMain(m *testing.M, options ...goleak.Option) {
	code := m.Run()
	if err := FindLeaks(options...); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, "operatortest: goroutines are left after the tests:", err)
		code = 1
	}
	os.Exit(code)
}

// FindLeaks returns an error that lists the goroutines that are left, for a TestMain that has more to do than
// VerifyTestMain. It waits for those that are about to end.
func FindLeaks(options ...goleak.Option) error {
	deadline := time.Now().Add(leakPatience)
	for {
		if shared.instance != nil {
			shared.instance.closeIdle()
		}
		err := goleak.Find(options...)
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}
