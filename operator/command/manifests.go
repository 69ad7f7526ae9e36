package command

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/operator"
)

// podListenAddress is where health and metrics are served in a Pod, and defaultReplicas is how many Pods there are with leader election.
const (
	podListenAddress = ":8080"
	defaultReplicas  = 2
)

// manifestsOptions are the values of the flags of "manifests" that are not those of "run".
type manifestsOptions struct {
	out        string
	helm       bool
	image      string
	into       string
	replicas   int32
	monitoring bool
}

func (p *program) manifestsCommand() *cobra.Command {
	var o manifestsOptions
	cmd := &cobra.Command{
		Use:   "manifests",
		Short: "Print what deploys the operator, with exactly the rights that it needs",
		Long: "Print what deploys the operator, as YAML, or write it into a folder: for kustomize, or as a Helm chart. It sends no request.\n\n" +
			"The flags of \"run\", given or by an environment variable, are those of the operator in its Pods. There it elects a leader, serves\n" +
			"health and metrics on " + podListenAddress + ", and waits for its definitions (--crds=check), unless they say otherwise.\n\n" +
			"The rights are made of what the operator declares: its sources, its resources, its lease, its events. They are Roles in the\n" +
			"namespaces of --namespace, or a ClusterRole without. With --namespace the definitions are not looked at (--crds=off), so that\n" +
			"nothing is needed beyond these namespaces. Everything is accepted under the Pod Security level \"restricted\".\n\n" +
			"The folder is overwritten file by file: keep what is yours in an overlay, or in values.",
		Example: p.examples(
			"manifests | kubectl apply --server-side -f -   # with the image "+identity.LeaseName(p.config.Name),
			"manifests --out deploy --image IMAGE           # then: kubectl apply --server-side -k deploy",
			"manifests --out chart --helm                   # then: helm install NAME chart",
			"manifests --namespace shops --into shops       # rights in one namespace only",
		),
		Args: understood(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(p, cmd.Flags()); err != nil {
				return err
			}
			d, err := p.deployment(cmd.Context(), cmd, o)
			if err != nil {
				return err
			}
			p.tellVariables(cmd)
			return d.write(cmd.OutOrStdout(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.out, "out", "", "folder to write to: a kustomization, or a chart with --helm (default print everything)")
	flags.BoolVar(&o.helm, "helm", false, "write a Helm chart, whose definitions are in crds/; with --out")
	flags.StringVar(&o.image, "image", identity.LeaseName(p.config.Name), "image of the operator")
	flags.StringVar(&o.into, "into", "", "namespace of the operator, which is there already (default one with the operator's name, which is made)")
	flags.Int32Var(&o.replicas, "replicas", defaultReplicas, "number of Pods; without leader election it is 1")
	flags.BoolVar(&o.monitoring, "monitoring", false,
		"have the Prometheus Operator collect the metrics and evaluate alert rules: a ServiceMonitor and a PrometheusRule")
	withoutVariables(flags, "out", "helm", "image", "into", "replicas", "monitoring")
	p.runFlags(flags)
	return cmd
}

// complete checks the flags, and gives those of "run" the values that they have in a Pod.
func (o *manifestsOptions) complete(p *program, flags *pflag.FlagSet) error {
	inPod := map[string]string{"leader-elect": "true", "listen-address": podListenAddress, "crds": string(operator.CheckCRDs)}
	if len(p.options.namespaces) > 0 {
		inPod["crds"] = string(operator.IgnoreCRDs)
	}
	for name, value := range inPod {
		if flags.Changed(name) {
			continue
		}
		if err := flags.Set(name, value); err != nil {
			return fmt.Errorf("--%s: %w", name, err)
		}
	}
	if err := p.options.checkRun(); err != nil {
		return err
	}
	fault := func(text string) error { return &usageError{errors.New(text)} }
	switch {
	case o.helm && o.out == "":
		return fault("--helm writes a folder: give --out too")
	case o.replicas < 1:
		return fault("--replicas must be 1 at least")
	case o.into != "" && len(validation.IsDNS1123Label(o.into)) > 0:
		return fault(fmt.Sprintf("--into %q can't be a namespace", o.into))
	case p.options.kubeconfig != "" || p.options.context != "":
		return fault("--kubeconfig and --context have no meaning in a Pod, which has a service account")
	}
	if !p.options.election.Enabled && !p.options.sharding {
		if flags.Changed("replicas") && o.replicas > 1 {
			return fault("--replicas beyond 1 takes --leader-elect, so that one of them writes, or --sharding, so that each writes what is its own")
		}
		o.replicas = 1
	}
	return nil
}

// runArguments are the flags of "run" that were given, as arguments.
func runArguments(flags *pflag.FlagSet) []string {
	args := []string{"run"}
	flags.Visit(func(f *pflag.Flag) {
		if _, own := f.Annotations[withoutVariableAnnotation]; own {
			return
		}
		for _, value := range valuesOf(f.Value) {
			args = append(args, "--"+f.Name+"="+value)
		}
	})
	return args
}

// valuesOf returns what a flag is to be given, one after the other, to have the value.
func valuesOf(v pflag.Value) []string {
	list, isList := v.(pflag.SliceValue)
	switch {
	case v.Type() == "stringArray" && isList:
		return list.GetSlice()
	case isList:
		return []string{commaSeparated(list.GetSlice())}
	case strings.HasPrefix(v.Type(), "stringTo"):
		return []string{strings.TrimSuffix(strings.TrimPrefix(v.String(), "["), "]")}
	}
	return []string{v.String()}
}

// tellVariables says which values are in the manifests because the environment has them: they may be meant for this place only.
func (p *program) tellVariables(cmd *cobra.Command) {
	for _, variable := range p.readVariables {
		fmt.Fprintf(cmd.ErrOrStderr(), "the value of $%s becomes an argument of the operator: unset it if it is not meant for its Pods\n", variable)
	}
}

// commaSeparated is how flags take several values, of which one may have a comma in it.
func commaSeparated(values []string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write(values) // into memory
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}

// deployment is what there is to know of the operator in its Pods.
type deployment struct {
	program *program
	options manifestsOptions
	// name is that of the objects, and namespace where they are.
	name, namespace string
	args            []string
	rights          operator.Rights
	// guards is the content of the file of guards, or empty.
	guards string
	// delegates tells that the API server is asked who somebody is, and what he may.
	delegates bool
	// health and page are the ports of what is served beyond loopback, or 0.
	health, page int32
}

// deployment makes the operator, without connecting it, and looks at what it declares.
func (p *program) deployment(ctx context.Context, cmd *cobra.Command, o manifestsOptions) (*deployment, error) {
	d := &deployment{program: p, options: o, name: identity.LeaseName(p.config.Name), args: runArguments(cmd.Flags())}
	d.namespace = d.name
	if o.into != "" {
		d.namespace = o.into
	}
	if messages := validation.IsDNS1123Label(d.namespace); len(messages) > 0 {
		return nil, &usageError{fmt.Errorf("%q can't be a namespace: name one by --into", d.namespace)}
	}
	if err := d.servePorts(); err != nil {
		return nil, err
	}
	if err := d.addGuards(); err != nil {
		return nil, err
	}
	p.logForPeople(cmd)
	offline := &rest.Config{Host: "https://kubernetes.default.svc", UserAgent: p.userAgent()}
	offline.Wrap(func(http.RoundTripper) http.RoundTripper { return unconnected{} })
	parts, err := p.newParts(ctx, cmd.ErrOrStderr(), &connection{config: offline, namespace: d.namespace},
		operator.DependenciesConfig{PlanOnly: p.options.planOnly, Fence: p.options.election.Fence})
	if err != nil {
		return nil, err
	}
	defer parts.close()
	config, err := p.operatorConfig(ctx, parts)
	if err != nil {
		return nil, err
	}
	d.rights = parts.deps.Rights(config)
	for _, namespace := range orAll(p.options.namespaces) {
		d.allow(namespace, p.config.Rules...)
	}
	d.allow("", p.config.ClusterRules...)
	d.delegates = p.options.authorizeMetrics || d.page > 0
	return d, nil
}

// servePorts finds out what is served beyond loopback.
func (d *deployment) servePorts() error {
	o := &d.program.options
	var err error
	if o.listenAddress != "" {
		if d.health, err = reachablePort(o.listenAddress); err != nil || d.health == 0 {
			return &usageError{fmt.Errorf("--listen-address %q can't be reached in a Pod: leave the flag out, or give it a port, such as %s",
				o.listenAddress, podListenAddress)}
		}
	}
	if o.inspectorAddress == "" {
		return nil
	}
	if d.page, err = reachablePort(o.inspectorAddress); err != nil {
		return &usageError{fmt.Errorf("--inspector-address: %w", err)}
	}
	if d.page > 0 && (o.inspectorCert == "" || path.Dir(o.inspectorCert) != path.Dir(o.inspectorKey)) {
		return &usageError{fmt.Errorf("--inspector-address %q takes a certificate: give --inspector-cert-file and --inspector-key-file, such as "+
			"/tls/tls.crt and /tls/tls.key, which are those of the Secret %s then", o.inspectorAddress, d.pageSecret())}
	}
	return nil
}

// pageSecret is the Secret with the certificate of the page.
func (d *deployment) pageSecret() string { return d.name + "-inspector-tls" }

// reachablePort returns the port of an address that others reach, and 0 for one on loopback.
func reachablePort(address string) (int32, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return 0, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 {
		return 0, fmt.Errorf("%q has no port", address)
	}
	if isLoopback(host) {
		return 0, nil
	}
	return int32(number), nil //nolint:gosec // it has 16 bits
}

// unconnected refuses every request.
type unconnected struct{}

// CloseIdleConnections is what http.Client.CloseIdleConnections looks for.
func (unconnected) CloseIdleConnections() {}

// RoundTrip implements http.RoundTripper.
func (unconnected) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return nil, fmt.Errorf("%s %s is refused: \"manifests\" makes the frameworks without a connection; send requests in their resources only, not while "+
		"they are made: %w", r.Method, r.URL.Path, framework.ErrExecutionFailed)
}

// write writes all of it to where it belongs.
func (d *deployment) write(stdout io.Writer, o manifestsOptions) error {
	files, err := d.files()
	switch {
	case err != nil:
		return err
	case o.out == "":
		return printManifests(stdout, files)
	case o.helm:
		return d.writeChart(stdout, o.out, files)
	}
	return writeKustomization(stdout, o.out, files)
}
