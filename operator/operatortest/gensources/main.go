// Command gensources writes controlplane.txtar, the text of the module in the
// folder controlplane. Run it with "go generate" in package operatortest.
package main

import (
	"log"
	"os"

	"github.com/operatorkit/operatorkit/operator/operatortest/internal/sources"
)

func main() {
	log.SetFlags(0)
	text, err := sources.Pack("controlplane")
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("controlplane.txtar", text, 0o644); err != nil { //nolint:gosec // a source file, for everyone to read
		log.Fatal(err)
	}
}
