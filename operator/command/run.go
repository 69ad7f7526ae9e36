package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/operator"
)

func (p *program) runCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the operator until SIGINT or SIGTERM",
		Long: "Run the operator until SIGINT or SIGTERM. Reconciliations under way complete then;\n" +
			"a second signal ends the program at once.\n\n" +
			"Without --leader-elect it warns at its start when another copy, which elects a leader, is at work.\n\n" +
			"With --plan the operator changes nothing: it says in events, metrics and its log what it would change.",
		Args: understood(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return p.run(cmd.Context(), cmd.ErrOrStderr()) },
	}
	p.runFlags(cmd.Flags())
	return cmd
}

func (p *program) run(ctx context.Context, stderr io.Writer) error {
	if err := p.options.checkRun(); err != nil {
		return err
	}
	connection, err := p.connect()
	if err != nil {
		return err
	}
	connection.config.QPS, connection.config.Burst = p.options.qps, p.options.burst
	shutdownTimeout := p.options.shutdownTimeout
	if shutdownTimeout == 0 {
		// For a framework 0 is its default; who gives the flag means no time.
		shutdownTimeout = -1
	}
	logger, err := p.logger(stderr)
	if err != nil {
		return err
	}
	traces, err := p.startTraces(ctx, logger)
	if err != nil {
		return err
	}
	defer traces.close()
	ctx, stop := operator.Signals(ctx)
	defer stop()
	dependencies := operator.DependenciesConfig{
		Logger:  logger,
		Workers: p.options.workers, ShutdownTimeout: shutdownTimeout, PlanOnly: p.options.planOnly, Fence: p.options.election.Fence,
		InspectorAddress: p.options.inspectorAddress, InspectorMemory: int(p.options.inspectorMemory.Value()),
		InspectorCertFile: p.options.inspectorCert, InspectorKeyFile: p.options.inspectorKey,
	}
	if traces.provider != nil {
		dependencies.TracerProvider = traces.provider
	}
	parts, err := p.newParts(ctx, stderr, connection, dependencies)
	if err != nil {
		return err
	}
	defer parts.close()
	if !p.config.KeepGlobalLoggers {
		if limit := limitMemory(); limit > 0 {
			parts.logger.Log("level", "info", "message", "memory is limited by that of the container", "bytes", limit)
		}
	}
	config, err := p.operatorConfig(ctx, parts)
	if err != nil {
		return err
	}
	o, err := operator.New(config)
	if err != nil {
		return err
	}
	p.warnOfDefinitions(parts)
	if !config.LeaderElection.Enabled && !p.options.planOnly {
		warnOfAnother(ctx, parts, cmp.Or(config.LeaderElection.Name, identity.LeaseName(p.config.Name)))
	}
	debugging, err := serveDebugging(p.options.debugAddress, parts.logger)
	if err != nil {
		return err
	}
	return errors.Join(o.Run(ctx), debugging.close())
}

// anotherTimeout bounds the look for another copy: the operator starts without an answer, too.
const anotherTimeout = 5 * time.Second

// warnOfAnother logs a warning if another copy of an operator that elects no leader holds a lease of its name: both would write. Without the right to
// read leases in all namespaces, or in its own, it can't be known.
func warnOfAnother(ctx context.Context, parts *parts, name string) {
	ctx, cancel := context.WithTimeout(ctx, anotherTimeout)
	defer cancel()
	leases := &coordinationv1.LeaseList{}
	named := client.MatchingFields{"metadata.name": name}
	if err := parts.deps.Client.List(ctx, leases, named); err != nil {
		_ = parts.deps.Client.List(ctx, leases, named, client.InNamespace(parts.connection.namespace))
	}
	for i := range leases.Items {
		lease := &leases.Items[i]
		holder, renewed, lasts := ptr.Deref(lease.Spec.HolderIdentity, ""), ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{}), ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)
		if holder != "" && time.Since(renewed.Time) < time.Duration(lasts)*time.Second {
			parts.logger.Log("level", "warning", "message", "another copy of the operator is at work, and this one elects no leader: both write; end one of them, or give --leader-elect",
				"lease", client.ObjectKeyFromObject(lease).String(), "holder", holder)
		}
	}
}

// onLoopback tells whether only this machine can reach an address.
func onLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && isLoopback(host)
}

// isLoopback tells whether a name or an IP address is that of loopback.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// checkRun checks the flags of "run".
func (o *options) checkRun() error {
	fault := func(text string) error { return &usageError{errors.New(text)} }
	switch {
	case o.workers < 1:
		return fault("--workers must be 1 at least")
	case o.inspectorMemory.Sign() <= 0:
		return fault("--inspector-memory must be more than 0; to have no page, give --inspector-address an empty value")
	case !slices.Contains(operator.CRDModes(), operator.CRDMode(o.crds)):
		return fault(fmt.Sprintf("--crds must be one of %q, is %q", operator.CRDModes(), o.crds))
	case o.debugAddress != "" && !onLoopback(o.debugAddress):
		return fault("--debug-address must be on loopback, such as 127.0.0.1:6060: it tells everything to everybody; kubectl port-forward leads there")
	case o.burst > 0 && o.qps <= 0:
		return fault("--kube-api-burst is for a limit: give --kube-api-qps too")
	}
	return nil
}

// operatorConfig is that of the operator of these parts.
func (p *program) operatorConfig(ctx context.Context, parts *parts) (operator.Config, error) {
	deps, election := parts.deps, p.options.election
	election.Fence = deps.Fence
	election.Enabled = election.Enabled || p.options.sharding
	if election.Lock != nil {
		election.Namespace, election.Name, election.Identity = "", "", ""
	}
	limits, err := p.upgradeConfig()
	if err != nil {
		return operator.Config{}, err
	}
	config := operator.Config{
		Upgrade: limits,
		Name:    p.config.Name, FormerNames: p.config.FormerNames, Logger: parts.logger, RESTConfig: deps.RESTConfig, Registry: deps.Registry,
		Frameworks: parts.frameworks, CRDs: p.config.CRDs, CRDMode: operator.CRDMode(p.options.crds), LeaderElection: election, ListenAddress: p.options.listenAddress,
		AuthorizeMetrics: p.options.authorizeMetrics, OpenMetrics: deps.TracerProvider != nil, Inspector: deps.Inspector,
		Sharding: operator.ShardingConfig{Enabled: p.options.sharding, Version: p.config.Version},
	}
	if p.config.Configure != nil {
		if err := called(parts.logger, func() error { return p.config.Configure(ctx, deps, &config) }); err != nil {
			return operator.Config{}, fmt.Errorf("configure the operator: %w", err)
		}
	}
	if err := deps.CheckWatched(config); err != nil {
		return operator.Config{}, err
	}
	if config.LeaderElection.Namespace == "" && config.LeaderElection.Lock == nil {
		config.LeaderElection.Namespace = parts.connection.namespace
	}
	config.StateNamespace = cmp.Or(config.StateNamespace, config.LeaderElection.Namespace, parts.connection.namespace)
	if p.options.planOnly {
		if err := planOnly(config.Frameworks); err != nil {
			return operator.Config{}, err
		}
		// They still say what kinds are called.
		config.CRDMode = operator.IgnoreCRDs
	}
	return config, nil
}

// planOnly is an error if one of the frameworks would do more than plan.
func planOnly(frameworks []*framework.Framework) error {
	for _, f := range frameworks {
		if !f.PlanOnly() {
			return fmt.Errorf("--plan: framework %q would not only plan: make it with Dependencies.NewFramework, or set "+
				"PlanOnly of its configuration to that of the Dependencies", f.Name())
		}
	}
	return nil
}
