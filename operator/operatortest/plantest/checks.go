package plantest

import (
	"flag"
	"os"
	"strconv"
	"testing"
)

// Checks says how often rapid checks each property of a package, for its TestMain: a check on real servers is some hundred requests, and
// rapid's own 100 would take minutes. With -short it is a fifth of them, but three at least. The flag -rapid.checks and the variable RAPID_CHECKS ask for another number. It panics where the
// tests don't use rapid.
func Checks(n int) {
	if os.Getenv("RAPID_CHECKS") != "" {
		return
	}
	if !flag.Parsed() {
		flag.Parse()
	}
	if testing.Short() { // of which rapid takes a fifth
		n = max(n, 15)
	}
	if err := flag.Set("rapid.checks", strconv.Itoa(n)); err != nil {
		panic(err)
	}
}
