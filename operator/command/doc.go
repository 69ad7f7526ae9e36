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
//	run        run the operator until SIGINT or SIGTERM; with --plan it only says what it would change
//	plan       show what the operator would change, for one object, a namespace, all, or a file, and change nothing
//	apply      do what a saved plan says, if it is still the same
//	explain    show the last reconciliations of an object, from the operator that runs; with -o dot or mermaid, a picture
//	           of what it consists of, with -o words the same as a list (inspector.Inspector.Draw)
//	crds       print the custom resource definitions, or apply them with --apply
//	manifests  print what deploys the operator, or write a kustomization or a Helm chart
//	version    print the version
//
// "run" creates or updates the definitions; with --crds=check it waits for somebody to apply them, with --crds=off it does not look. A user
// with rights in one namespace only runs everything with --namespace, where the definitions are served. It says the same in "run", "plan" and
// "apply": the namespaces that the operator looks at.
//
// With --sharding all replicas work, each on a part of the objects, see operator.ShardingConfig; it includes --leader-elect.
//
// With --leader-elect one of several replicas works, and the others are ready to. What an author makes of the Dependencies can't
// write beside another replica then, see package operator. Config.LeaderElection and Config.Configure give an operator what
// operator.Config knows beyond the flags.
//
// --debug-address serves Go's profiles on loopback, and the level of the log, which is another one from then on:
//
//	curl -X PUT -d debug http://127.0.0.1:6060/debug/log-level
//
// "run" exports OpenTelemetry traces by OTLP when OTEL_EXPORTER_OTLP_ENDPOINT, or that of traces, is set, or OTEL_TRACES_EXPORTER is otlp. It
// reads the standard variables OTEL_* with their whole names, and refuses what can't be followed; docs/production.md tells what there is.
//
// Go's collector keeps to nine tenths of the memory of the container, unless GOMEMLIMIT says otherwise.
//
// The rights in "manifests" are made of what the operator declares: its sources, the resources that implement framework.RightsLister, its lease,
// its events, its definitions (operator.Dependencies.Rights). What else it does goes to Config.Rules and Config.ClusterRules. operatortest.Rights
// proves that they are exactly those that it needs. A request that is refused nevertheless says, in the log and in events, which rule is lacking.
//
// A plan is read, approved, and then done:
//
//	website-operator plan home --out home.plan
//	website-operator apply home.plan
//
// # Promises
//
//   - A flag wins over its environment variable, which wins over the default. The variable of --log-level is
//     OPERATORKIT_LOG_LEVEL; an empty one counts as not set. The help tells all of them. One that no flag has is refused.
//   - The API server is found as kubectl does it: --kubeconfig, then KUBECONFIG, then ~/.kube/config, then the Pod's
//     service account.
//   - Results go to stdout; logs and errors go to stderr.
//   - "plan" sends the API server no request that writes, whatever the frameworks do: the connection refuses it. "apply"
//     changes nothing unless every plan of the file is the same as when it was saved. Both read the sources of the
//     frameworks, and those that Config.Configure adds; objects that are pushed to a framework without a source are not known to them.
//   - "explain" sends the inspector the token of --token, or that of the kubeconfig, the latter by https and to a server with a
//     certificate that it trusts only.
//   - The exit code is 0 for success, 1 for a failure, and 64 (EX_USAGE of sysexits.h) for a command line that can't be
//     understood. "plan --detailed-exitcode" has 2 when there are changes, as terraform has it; without the flag they are
//     a success. What fails to be planned is a failure in any case.
package command
