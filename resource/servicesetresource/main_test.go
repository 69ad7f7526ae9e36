package servicesetresource_test

import (
	"flag"
	"os"
	"testing"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestMain(m *testing.M) {
	// Each check is some hundred requests. The command line can ask for more.
	if err := flag.Set("rapid.checks", "12"); err != nil {
		_, _ = os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
	operatortest.VerifyTestMain(m)
}
