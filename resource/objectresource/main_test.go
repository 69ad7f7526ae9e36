package objectresource_test

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// Each check is some hundred requests. The command line can ask for more.
	if err := flag.Set("rapid.checks", "20"); err != nil {
		_, _ = os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}
