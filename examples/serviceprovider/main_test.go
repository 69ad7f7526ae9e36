package postgres_test

import (
	"os"
	"testing"

	"github.com/operatorkit/operatorkit/examples/internal/demotest"
	"github.com/operatorkit/operatorkit/examples/serviceprovider/story"
)

func TestMain(m *testing.M) {
	demotest.Tell(story.New)
	os.Exit(m.Run())
}
