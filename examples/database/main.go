// Command database is a whole operator of what people ask operators for: a Database becomes a StatefulSet, Services, a CronJob for its backups,
// and records in a zone outside of the cluster. Its logic has two versions, of which a label of the Database picks one.
//
//	$ go run ./examples/database run --zone http://127.0.0.1:8053
//	$ go run ./examples/database plan -A --zone http://127.0.0.1:8053
package main

import (
	"context"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/operatorkit/operatorkit/examples/database/v1alpha1"
	"github.com/operatorkit/operatorkit/examples/internal/zone"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
)

func main() {
	os.Exit(command.Execute(context.Background(), newConfig(), os.Args[1:], os.Stdout, os.Stderr))
}

func newConfig() command.Config {
	var url string
	return command.Config{
		Name: "database", Short: "Looks after Databases", CRDFiles: v1alpha1.CRDs,
		AddToScheme: []func(*runtime.Scheme) error{v1alpha1.AddToScheme},
		Flags:       func(flags *pflag.FlagSet) { flags.StringVar(&url, "zone", "", "address of the zone with the records") },
		New: func(_ context.Context, d *operator.Dependencies) ([]*framework.Framework, error) {
			f, err := newFramework(d, &zone.Client{URL: url, HTTP: d.HTTPClient(nil)})
			return []*framework.Framework{f}, err
		},
	}
}
