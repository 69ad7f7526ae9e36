package helm_test

import (
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/plantest"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	plantest.Checks(6)
	operatortest.VerifyTestMain(m)
}
