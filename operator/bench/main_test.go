package main

import (
	"flag"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// TestMain sets what main sets: a contender is run once in a round.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.benchtime", "1x"); err != nil {
		panic(err)
	}
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}
