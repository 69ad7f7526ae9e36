package statusresource_test

import (
	"testing"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/plantest"
)

func TestMain(m *testing.M) {
	plantest.Checks(100)
	operatortest.VerifyTestMain(m)
}
