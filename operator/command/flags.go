package command

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/inspector"
	"github.com/operatorkit/operatorkit/operator/logging"
)

// DefaultListenAddress is where "run" serves health and metrics: on this machine only. In a Pod, give ":8080".
const DefaultListenAddress = "127.0.0.1:8080"

// options are the values of the flags.
type options struct {
	kubeconfig string
	context    string
	logFormat  string
	logLevel   string

	namespaces       []string
	workers          int
	listenAddress    string
	election         operator.LeaderElectionConfig
	sharding         bool
	upgradeBudget    string
	shutdownTimeout  time.Duration
	planOnly         bool
	guards           string
	crds             string
	authorizeMetrics bool
	debugAddress     string
	inspectorAddress string
	inspectorCert    string
	inspectorKey     string
	inspectorMemory  resource.QuantityValue
	qps              float32
	burst            int
}

// connectionFlags are those of all commands.
func (p *program) connectionFlags(flags *pflag.FlagSet) {
	o := &p.options
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file (default as kubectl: $KUBECONFIG, ~/.kube/config, the Pod's service account)")
	flags.StringVar(&o.context, "context", "", "context of the kubeconfig (default its current one)")
	flags.StringVar(&o.logFormat, "log-format", string(logging.FormatJSON), "format of the log: json or text")
	flags.StringVar(&o.logLevel, "log-level", string(logging.LevelInfo), "lightest level of the log: debug, info, warning or error")
}

// runFlags are those of the run command.
func (p *program) runFlags(flags *pflag.FlagSet) {
	o := &p.options
	p.namespaceFlag(flags)
	flags.IntVar(&o.workers, "workers", framework.DefaultWorkers, "objects that each framework reconciles at the same time")
	flags.StringVar(&o.listenAddress, "listen-address", DefaultListenAddress, "host and port of /healthz, /readyz and /metrics, such as :8080 in a Pod; empty is off")
	flags.BoolVar(&o.authorizeMetrics, "metrics-authorization", false, "let only those read /metrics whom the API server lets get that path, as their bearer tokens tell")
	flags.StringVar(&o.debugAddress, "debug-address", "", "host and port on loopback, such as 127.0.0.1:6060, of profiles (/debug/pprof/), and of the level of the log, which is read and set by GET and PUT of /debug/log-level (default off)")
	flags.StringVar(&o.inspectorAddress, "inspector-address", inspector.DefaultAddress, "host and port of the page that shows what the operator does; beyond this machine, it takes a certificate, and users need permission from the API server; empty is off")
	flags.StringVar(&o.inspectorCert, "inspector-cert-file", "", "certificate of the page, in PEM, which is read again when it changes (default no TLS)")
	flags.StringVar(&o.inspectorKey, "inspector-key-file", "", "key of the certificate of the page, in PEM")
	o.inspectorMemory.Quantity = *resource.NewQuantity(inspector.DefaultMemory, resource.BinarySI)
	flags.Var(&o.inspectorMemory, "inspector-memory", "about how much memory the reconciliations that the page shows may take, such as 128Mi")
	p.electionFlags(flags)
	flags.StringVar(&o.upgradeBudget, "upgrade-budget", p.config.Upgrade.Budget, "objects that a new build of the operator may change at a time before they are ready again, such as 5, or 2% of all (default no limit)")
	flags.DurationVar(&o.shutdownTimeout, "shutdown-timeout", framework.DefaultShutdownTimeout, "time for reconciliations under way to complete at the end, before they are cancelled; 0 is none")
	flags.Float32Var(&o.qps, "kube-api-qps", 0, "requests a second to the API server at most (default no limit but the server's own)")
	flags.IntVar(&o.burst, "kube-api-burst", 0, "requests at once to the API server at most, with --kube-api-qps (default 10)")
	flags.StringVar(&o.crds, "crds", string(operator.EnsureCRDs), "what to do about the custom resource definitions before anything else: ensure creates and updates them, but never to what is older; check waits until somebody has applied them; off does not look")
	flags.BoolVar(&o.planOnly, "plan", false, "only plan: say what would change, in events, metrics and the log, and change nothing")
	p.guardFlags(flags)
	p.ownFlags(flags)
}

// namespaceFlag adds --namespace, which says the same in all commands that make the frameworks.
func (p *program) namespaceFlag(flags *pflag.FlagSet) {
	flags.StringSliceVarP(&p.options.namespaces, "namespace", "n", nil, "namespaces that the operator looks at, with commas between (default all)")
}

// electionFlags are those about the leader election. Their defaults are those of the configuration.
func (p *program) electionFlags(flags *pflag.FlagSet) {
	e := &p.options.election
	*e = p.config.LeaderElection
	orDefault := func(d, otherwise time.Duration) time.Duration {
		if d == 0 {
			return otherwise
		}
		return d
	}
	flags.BoolVar(&e.Enabled, "leader-elect", e.Enabled, "let one of several replicas work, elected by a Lease")
	flags.BoolVar(&p.options.sharding, "sharding", false, "let all replicas work, each on a part of the objects, by namespace; it includes --leader-elect")
	flags.StringVar(&e.Namespace, "leader-election-namespace", e.Namespace, "namespace of the Lease (default that of the Pod or of the kubeconfig's context)")
	flags.StringVar(&e.Name, "leader-election-name", e.Name, "name of the Lease (default that of the operator)")
	flags.DurationVar(&e.LeaseDuration, "leader-election-lease-duration", orDefault(e.LeaseDuration, operator.DefaultLeaseDuration), "how long others wait after the last renewal of the Lease before they take over, in whole seconds")
	flags.DurationVar(&e.RenewDeadline, "leader-election-renew-deadline", orDefault(e.RenewDeadline, operator.DefaultRenewDeadline), "how long the leader tries to renew the Lease before it gives up")
	flags.DurationVar(&e.RetryPeriod, "leader-election-retry-period", orDefault(e.RetryPeriod, operator.DefaultRetryPeriod), "pause between two tries to get or renew the Lease")
}

// ownFlags adds the flags that are the operator's own. One whose name is taken already is a fault of the configuration.
func (p *program) ownFlags(flags *pflag.FlagSet) {
	if p.config.Flags == nil {
		return
	}
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	p.config.Flags(own)
	own.VisitAll(func(f *pflag.Flag) {
		if flags.Lookup(f.Name) != nil || f.Shorthand != "" && flags.ShorthandLookup(f.Shorthand) != nil {
			p.taken = append(p.taken, f.Name)
			return
		}
		flags.AddFlag(f)
	})
}

// withoutVariableAnnotation is on flags that have no environment variable.
const withoutVariableAnnotation = "operatorkit.io/without-variable"

// withoutVariables makes flags have no environment variables: those that say what is asked for this time.
func withoutVariables(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		flags.Lookup(name).Annotations = map[string][]string{withoutVariableAnnotation: {}}
	}
}

// variable returns the name of the environment variable of a flag, and nothing if it has none.
func (p *program) variable(flag *pflag.Flag) string {
	if _, without := flag.Annotations[withoutVariableAnnotation]; without || flag.Name == "help" {
		return ""
	}
	return p.config.EnvPrefix + "_" + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(flag.Name))
}

// ofService matches what follows the prefix in the variables that Kubernetes gives to Pods for a Service whose name begins as the operator's.
var ofService = regexp.MustCompile(`^(_[A-Z0-9_]+)?_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// unknownVariables returns the variables with the prefix of the operator that no flag of any command has, and nobody else reads.
func (p *program) unknownVariables(root *cobra.Command) []string {
	known := map[string]bool{}
	for _, name := range p.config.EnvVariables {
		known[name] = true
	}
	know := func(f *pflag.Flag) { known[p.variable(f)] = true }
	root.PersistentFlags().VisitAll(know)
	for _, c := range root.Commands() {
		c.Flags().VisitAll(know)
	}
	var unknown []string
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		rest, ours := strings.CutPrefix(name, p.config.EnvPrefix)
		if ours && strings.HasPrefix(rest, "_") && value != "" && !known[name] && !ofService.MatchString(rest) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}

// readEnvironment sets the flags that were not given to the values of their variables.
func (p *program) readEnvironment(cmd *cobra.Command) error {
	if unknown := p.unknownVariables(cmd.Root()); len(unknown) > 0 {
		return &usageError{fmt.Errorf("no flag has the environment variable %s: take it away, or mend its name; the help of each command names those that there are",
			strings.Join(unknown, ", "))}
	}
	flags := cmd.Flags()
	var err error
	flags.VisitAll(func(f *pflag.Flag) {
		variable := p.variable(f)
		if f.Changed || variable == "" || err != nil {
			return
		}
		value := os.Getenv(variable)
		if value == "" {
			return
		}
		if setErr := flags.Set(f.Name, value); setErr != nil {
			err = &usageError{fmt.Errorf("environment variable %s: %w", variable, setErr)}
		}
		p.readVariables = append(p.readVariables, variable)
	})
	return err
}

// tellEnvironment adds the names of the variables to the help of the flags.
func (p *program) tellEnvironment(cmd *cobra.Command) {
	tell := func(f *pflag.Flag) {
		if variable := p.variable(f); variable != "" {
			f.Usage += " [$" + variable + "]"
		}
	}
	cmd.PersistentFlags().VisitAll(tell)
	for _, c := range cmd.Commands() {
		c.Flags().VisitAll(tell)
	}
}
