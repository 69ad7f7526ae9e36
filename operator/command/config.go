package command

import (
	"cmp"
	"context"
	"io/fs"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/internal/faults"
	"github.com/operatorkit/operatorkit/operator"
)

// DefaultEnvPrefix begins the names of environment variables.
const DefaultEnvPrefix = "OPERATORKIT"

// Config says what is an operator's own.
type Config struct {
	// Name is the name of the operator: of its program in the help, in logs, events and metrics, of its lease, and in all marks that
	// it leaves. Required.
	Name string
	// FormerNames are names that the operator had before, see operator.Config.FormerNames. Default: none.
	FormerNames []string
	// Short says in a line what the operator does, for the help. Default: none.
	Short string
	// Version is the version of the operator. Default: that of the main module, as the Go toolchain knows it.
	Version string
	// CRDs are ensured before the sources start, and printed by "crds". Default: none.
	CRDs []*apiextensionsv1.CustomResourceDefinition
	// CRDFiles holds more of them, as operator.ReadCRDs reads them. Default: none.
	CRDFiles fs.FS
	// AddToScheme make the types of the operator known to its client, which knows Kubernetes' own. Default: none.
	AddToScheme []func(*runtime.Scheme) error
	// RESTConfig is the API server's when neither --kubeconfig nor --context is given. It is not changed. Default: that of the
	// kubeconfig, as kubectl finds it, or of the Pod.
	RESTConfig *rest.Config
	// New makes the frameworks. The context ends with the operator. Required.
	New func(ctx context.Context, deps *operator.Dependencies) ([]*framework.Framework, error)
	// ReadGuards reads the file of --guards, see guards.Read of package operator/guards. Without it there are neither the flag nor the command
	// "guards", and nothing of what reads expressions is linked. Default: none.
	ReadGuards func(file []byte, namespaces client.Reader) ([]framework.Guard, error)
	// LeaderElection is what "run" does about it unless its flags say otherwise: their defaults are its times and names, and
	// Enabled is that of --leader-elect. With a Lock of its own, the flags for the name and the namespace of the Lease have no
	// effect. Default: off, and the defaults of operator.LeaderElectionConfig.
	LeaderElection operator.LeaderElectionConfig
	// Upgrade limits how many objects a new build changes at a time. Its Budget is the default of --upgrade-budget. Default: no limit.
	Upgrade operator.UpgradeConfig
	// Configure adds to what "run" gives to operator.New: Runnables, Sources, time-outs. It is called once after New, when the flags
	// are in config already; what it changes of those wins over them. "plan", "apply" and "manifests" call it too: the first two run
	// its Sources, and none of them its Runnables. An error ends the command. Default: none.
	Configure func(ctx context.Context, deps *operator.Dependencies, config *operator.Config) error
	// Rules are rights that the operator needs in the namespaces that it looks at, beyond those that "manifests" knows of by itself, see
	// operator.Dependencies.Rights. Default: none.
	Rules []rbacv1.PolicyRule
	// ClusterRules are more of them, in all namespaces and for what has none, also when the operator looks at some namespaces only. Default: none.
	ClusterRules []rbacv1.PolicyRule
	// EnvPrefix begins the names of the environment variables, before an underscore. Default: DefaultEnvPrefix.
	EnvPrefix string
	// EnvVariables are further variables with the prefix, by their whole names, which the operator reads itself. Others that no flag
	// has are an error of the command line, so that a name that is mistyped has no silent effect; those that Kubernetes gives to Pods for
	// Services are passed over. Default: none.
	EnvVariables []string
	// KeepGlobalLoggers leaves the loggers alone that the process shares: those of klog, controller-runtime and slog's
	// default. It is for programs in which others use client-go at the same time, such as tests that run the command in
	// their own process: replacing these loggers then is a data race. The memory limit of Go's collector is left alone too. Default: they are
	// led to the operator's log, and the collector keeps to nine tenths of the memory of the container, unless GOMEMLIMIT says otherwise.
	KeepGlobalLoggers bool
	// Commands are further commands, which are the operator's own. An *ExitError of one is its exit code. Default: none.
	Commands func(program *Program) []*cobra.Command
	// Flags adds flags that are the operator's own to the commands that make the frameworks: "run", "plan", "apply" and "manifests". It is
	// called for each of these, so it must not rely on being called once. They have environment variables too. "manifests" gives to the
	// operator in its Pods what was given to it: a pflag.Value of your own must take in Set what its String returns. Default: none.
	Flags func(flags *pflag.FlagSet)
}

// complete fills in the defaults and returns an error for which framework.IsInvalidConfig holds.
func (c *Config) complete() error {
	var wrong faults.List
	wrong.If(c.Name == "", "Name must not be empty")
	wrong.If(c.New == nil, "New must not be nil")
	for i, crd := range c.CRDs {
		wrong.If(crd == nil, "CRDs[%d] must not be nil", i)
	}
	if c.CRDFiles != nil {
		read, err := operator.ReadCRDs(c.CRDFiles)
		if err != nil {
			wrong.Add("CRDFiles: %s", err)
		}
		c.CRDs = append(c.CRDs[:len(c.CRDs):len(c.CRDs)], read...)
	}
	if err := wrong.Of("command.Config"); err != nil {
		return err
	}
	if c.Version == "" {
		c.Version = "unknown"
		if build, ok := debug.ReadBuildInfo(); ok && build.Main.Version != "" {
			c.Version = build.Main.Version
		}
	}
	if c.EnvPrefix == "" {
		c.EnvPrefix = DefaultEnvPrefix
	}
	return nil
}

// exampleKind is a kind of the operator as it is written on a command line.
func (c *Config) exampleKind() string {
	if len(c.CRDs) > 0 {
		return cmp.Or(c.CRDs[0].Spec.Names.Singular, strings.ToLower(c.CRDs[0].Spec.Names.Kind))
	}
	return "KIND"
}

// kindNamed returns the kind that the definitions of the operator know by that name: singular, plural or short, in any
// case. What they do not know is returned as it is.
func (c *Config) kindNamed(name string) string {
	for _, crd := range c.CRDs {
		names := crd.Spec.Names
		for _, known := range append([]string{names.Singular, names.Plural}, names.ShortNames...) {
			if strings.EqualFold(known, name) {
				return names.Kind
			}
		}
	}
	return name
}
