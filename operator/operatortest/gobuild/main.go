// Command gobuild builds a program, and says every few seconds how far that is:
//
//	gobuild -o bin/demo ./examples/platform/cmd/demo
//
// It needs nothing but the standard library, so that it is there at once on a fresh machine, when all else is yet to be compiled.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"

	"github.com/operatorkit/operatorkit/operator/operatortest/internal/gobuild"
)

func main() {
	output := flag.String("o", "", "where to put the program")
	flag.Usage = func() {
		fmt.Fprintf(os.Stderr, "Usage:\n  gobuild -o file package\n\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	if *output == "" || flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := build(flag.Arg(0), *output); err != nil {
		fmt.Fprintf(os.Stderr, "gobuild: %v\n", err)
		os.Exit(1)
	}
}

// build builds a package. What has to be downloaded before it is known what there is to compile is shown as go shows it.
func build(pkg, output string) error {
	list := exec.Command("go", "list", "-deps", pkg) //nolint:gosec // the caller's package
	list.Stderr = os.Stderr
	dependencies, err := list.Output()
	if err != nil {
		return fmt.Errorf("look for what %s consists of: %w", pkg, err)
	}
	cmd := exec.Command("go", "build", "-v", "-o", output, pkg) //nolint:gosec // the caller's package
	return gobuild.Run(cmd, pkg, bytes.Count(dependencies, []byte("\n")), os.Stderr)
}
