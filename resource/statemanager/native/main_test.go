package native_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// TestMain stops the second control plane after the last test.
func TestMain(m *testing.M) {
	code := m.Run()
	if east.instance != nil {
		if err := east.instance.Stop(context.Background()); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if err := operatortest.FindLeaks(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, "goroutines are left after the tests:", err)
		code = 1
	}
	os.Exit(code)
}
