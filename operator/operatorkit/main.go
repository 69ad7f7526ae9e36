// Command operatorkit writes new operators, and adds to those that it has written:
//
//	operatorkit new shop --module example.com/shop --group shop.example.com --kind Store
//	cd shop && make test && make run
//	operatorkit add api --kind Cart          # another kind, with a framework of its own
//	operatorkit add version v2 --kind Store  # the next version of the logic, as a shadow first
//	operatorkit add resource backups --kind Store --type external
//
// What it writes is Go code that belongs to its author. There are no markers in it: what "add" changes it finds by the syntax tree, such as the
// list of resources of a version, and it changes nothing else. Where that list is not to be found any more it writes nothing, and
// says what to add by hand.
//
// From a checkout ("go run ./operator/operatorkit new …") the project gets a replace to that checkout.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// one is a check for exactly one argument.
func one(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("give exactly one %s, and not %d: %s", name, len(args), cmd.UseLine())
		}
		return nil
	}
}

func main() { os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr)) }

// execute runs the command line and returns the exit code.
func execute(args []string, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use: "operatorkit", Short: "Write operators, and add to them",
		SilenceErrors: true, SilenceUsage: true, CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	add := &cobra.Command{Use: "add", Short: "Add to the project in the current folder"}
	add.AddCommand(addAPICommand(), addVersionCommand(), addResourceCommand())
	root.AddCommand(newCommand(), add)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if err := root.Execute(); err != nil {
		fmt.Fprintf(stderr, "operatorkit: %s\n", err)
		return 1
	}
	return 0
}
