package command_test

import (
	"context"
	"errors"
	"os"
	"testing/fstest"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
)

// A main hands its arguments and streams over, and ends with the exit code. Its definitions come from an embed.FS.
func ExampleExecute() {
	config := command.Config{
		Name: "tree-operator",
		CRDFiles: fstest.MapFS{"crds/trees.yaml": {Data: []byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: trees.example.com}
spec:
  group: example.com
  names: {kind: Tree, plural: trees}
  scope: Cluster
  versions: [{name: v1, served: true, storage: true}]
`)}},
		New: func(context.Context, *operator.Dependencies) ([]*framework.Framework, error) {
			return nil, errors.New("make frameworks of deps here")
		},
	}
	code := command.Execute(context.Background(), config, []string{"crds"}, os.Stdout, os.Stderr)
	if code != command.ExitOK {
		os.Exit(code)
	}
	// Output:
	// ---
	// apiVersion: apiextensions.k8s.io/v1
	// kind: CustomResourceDefinition
	// metadata:
	//   name: trees.example.com
	// spec:
	//   group: example.com
	//   names:
	//     kind: Tree
	//     plural: trees
	//   scope: Cluster
	//   versions:
	//   - name: v1
	//     served: true
	//     storage: true
}
