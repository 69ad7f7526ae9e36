package platform_test

import (
	"os"
	"testing"

	"github.com/operatorkit/operatorkit/examples/internal/demotest"
	"github.com/operatorkit/operatorkit/examples/platform/story"
)

func TestMain(m *testing.M) {
	demotest.Tell(story.New)
	os.Exit(m.Run())
}
