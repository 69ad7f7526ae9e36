package natscontroller_test

import (
	"testing"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/natsserver"
)

func TestMain(m *testing.M) {
	natsserver.Main()
	runReplica()
	operatortest.VerifyTestMain(m)
}
