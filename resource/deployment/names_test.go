package deployment_test

import (
	"strings"
	"testing"
)

func TestErrorsNameMachinesAndSayWhatContainersHaveWritten(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(1)
		_, err := deploy(t.Context(), s, web("bad:v1", 1), nil)
		if err == nil || !strings.Contains(err.Error(), " on machine m1: ") || !strings.Contains(err.Error(), `its last lines are "last line of bad:v1"`) {
			t.Errorf("got %v", err)
		}
	})
}
