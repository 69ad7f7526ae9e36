package machines_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := errors.Join(pool.Close(), operatortest.FindLeaks()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
