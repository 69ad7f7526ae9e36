package sveltos_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/plantest"
)

func TestMain(m *testing.M) {
	plantest.Checks(8)
	code := m.Run()
	if secondPlane != nil {
		if err := secondPlane.Stop(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if code == 0 {
		if err := operatortest.FindLeaks(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
