package gateways_test

import (
	"testing"

	"github.com/operatorkit/operatorkit/examples/internal/demotest"
	"github.com/operatorkit/operatorkit/examples/nats-controller/story"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestMain(m *testing.M) {
	demotest.Tell(story.New)
	operatortest.VerifyTestMain(m)
}
