package command

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/operatorkit/operatorkit/framework"
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

	namespaces              []string
	workers                 int
	listenAddress           string
	leaderElect             bool
	leaderElectionNamespace string
	shutdownTimeout         time.Duration
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
	flags.StringSliceVar(&o.namespaces, "namespace", nil, "namespaces to look at, with commas between (default all)")
	flags.IntVar(&o.workers, "workers", framework.DefaultWorkers, "objects that each framework reconciles at the same time")
	flags.StringVar(&o.listenAddress, "listen-address", DefaultListenAddress, "host and port of /healthz, /readyz and /metrics, such as :8080 in a Pod; empty is off")
	flags.BoolVar(&o.leaderElect, "leader-elect", false, "let one of several replicas work, elected by a Lease")
	flags.StringVar(&o.leaderElectionNamespace, "leader-election-namespace", "", "namespace of the Lease (default that of the Pod or of the kubeconfig's context)")
	flags.DurationVar(&o.shutdownTimeout, "shutdown-timeout", framework.DefaultShutdownTimeout, "time for reconciliations under way to complete at the end, before they are cancelled; 0 is none")
	if p.config.Flags != nil {
		p.config.Flags(flags)
	}
}

// variable returns the name of the environment variable of a flag.
func (p *program) variable(flag string) string {
	return p.config.EnvPrefix + "_" + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(flag))
}

// readEnvironment sets the flags that were not given to the values of their variables.
func (p *program) readEnvironment(flags *pflag.FlagSet) error {
	var err error
	flags.VisitAll(func(f *pflag.Flag) {
		value := os.Getenv(p.variable(f.Name))
		if f.Changed || value == "" || err != nil || f.Name == "help" {
			return
		}
		if setErr := flags.Set(f.Name, value); setErr != nil {
			err = &usageError{fmt.Errorf("environment variable %s: %w", p.variable(f.Name), setErr)}
		}
	})
	return err
}

// tellEnvironment adds the names of the variables to the help of the flags.
func (p *program) tellEnvironment(cmd *cobra.Command) {
	tell := func(f *pflag.Flag) { f.Usage += " [$" + p.variable(f.Name) + "]" }
	cmd.PersistentFlags().VisitAll(tell)
	for _, c := range cmd.Commands() {
		c.Flags().VisitAll(tell)
	}
}
