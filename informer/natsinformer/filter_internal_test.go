package natsinformer

import (
	"strings"
	"testing"

	"github.com/giantswarm/micrologger"
)

func TestR4AFilterThatPanicsRefusesItsKeyAndIsLogged(t *testing.T) {
	log := &strings.Builder{}
	logger, err := micrologger.New(micrologger.Config{IOWriter: log})
	if err != nil {
		t.Fatal(err)
	}
	filter := guardFilter(func(key string) bool {
		if key == "bad" {
			panic("in Filter")
		}
		return true
	}, logger)
	if filter("bad") || !filter("good") {
		t.Error("want the bad key refused, and the good one accepted")
	}
	if !strings.Contains(log.String(), "panic: value of type string in ") || strings.Contains(log.String(), "in Filter") {
		t.Errorf("the log lacks the panic, or quotes it:\n%s", log)
	}
}
