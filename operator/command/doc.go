// Package command is the command line that every operator gets. An author says what is the operator's own; the command
// makes the connection, the logger, the metrics and the events, and runs it all:
//
//	//go:embed crds/*.yaml
//	var crds embed.FS
//
//	func main() {
//		os.Exit(command.Execute(context.Background(), command.Config{
//			Name:        "website-operator",
//			CRDFiles:    crds,
//			AddToScheme: []func(*runtime.Scheme) error{v1alpha1.AddToScheme},
//			New:         newFrameworks, // func(context.Context, *operator.Dependencies) ([]*framework.Framework, error)
//		}, os.Args[1:], os.Stdout, os.Stderr))
//	}
//
// The commands are
//
//	run      run the operator until SIGINT or SIGTERM
//	crds     print the custom resource definitions, or apply them with --apply
//	version  print the version
//
// # Promises
//
//   - A flag wins over its environment variable, which wins over the default. The variable of --log-level is
//     OPERATORKIT_LOG_LEVEL; an empty one counts as not set. The help tells all of them.
//   - The API server is found as kubectl does it: --kubeconfig, then KUBECONFIG, then ~/.kube/config, then the Pod's
//     service account.
//   - Results go to stdout; logs and errors go to stderr.
//   - The exit code is 0 for success, 1 for a failure, and 2 for a command line that can't be understood.
package command
