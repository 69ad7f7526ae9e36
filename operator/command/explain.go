package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/inspector"
)

// explainTimeout is how long "explain" waits for the operator.
const explainTimeout = 30 * time.Second

// explainOptions are the values of the flags of "explain".
type explainOptions struct {
	output outputOptions
	kind   string
	name   string
	// namespace is that of the flag, else that of the connection.
	namespace string
	asking    askingOptions
	last      int
	// changes leaves out what neither changed anything nor failed.
	changes bool
	// graph is the name of the graph that is asked for.
	graph string
}

func (p *program) explainCommand() *cobra.Command {
	var o explainOptions
	cmd := &cobra.Command{
		Use:   "explain [KIND] NAME",
		Short: "Show the last reconciliations of an object, from the operator that runs",
		Long: "Show what the operator that runs has done for an object in its last reconciliations, and why: what triggered\n" +
			"them, what each resource changed, how long it took, what went wrong, and when the next try is. KIND is\n" +
			"needed if several frameworks have an object of that name.\n\n" +
			"With -o dot or -o mermaid it is a picture of the object, for Graphviz or for Mermaid: the graph that the\n" +
			"operator draws of it, if it does; with -o words it is the same as a list. Of several, --graph names the one.\n\n" +
			"It asks the operator's inspector. For one in a Pod, forward its port first, such as with\n" +
			"\"kubectl port-forward deployment/" + p.config.Name + " 8082\". One that listens beyond its own machine is\n" +
			"asked by https and wants a token: --token, or that of the kubeconfig.",
		Example: p.examples("explain home", "explain home --changes                 # only what changed something or failed",
			"explain "+p.config.exampleKind()+" home -n default -o json", "explain home -o dot | dot -Tsvg > home.svg"),
		Args: understood(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.name = args[0]; len(args) == 2 {
				o.kind, o.name = p.config.kindNamed(args[0]), args[1]
			}
			if err := o.output.check(); err != nil {
				return err
			}
			if o.last < 1 {
				return &usageError{errors.New("--last must be 1 at least")}
			}
			if o.graph != "" && o.draws() == nil {
				return &usageError{errors.New("--graph needs -o " + orOf(outputGraphs))}
			}
			connection, err := p.connect()
			if err != nil && o.namespace == "" {
				return fmt.Errorf("%w: or give --namespace", err)
			}
			if err == nil {
				o.namespace = cmp.Or(o.namespace, connection.namespace)
				o.asking.credentials = connection.config
			}
			ctx, stop := operator.Signals(cmd.Context())
			defer stop()
			ctx, cancel := context.WithTimeout(ctx, explainTimeout)
			defer cancel()
			return explain(ctx, cmd.OutOrStdout(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.namespace, "namespace", "n", "", "namespace of the object (default that of the Pod or of the kubeconfig's context)")
	o.asking.flags(flags)
	flags.IntVar(&o.last, "last", 5, "how many reconciliations to show")
	flags.BoolVar(&o.changes, "changes", false, "show only reconciliations that changed something or failed")
	flags.StringVar(&o.graph, "graph", "", "name of the graph to write with -o dot, mermaid or words (default the first)")
	o.output.others = outputGraphs
	o.output.flags(flags)
	withoutVariables(flags, "namespace", "last", "changes", "graph")
	return cmd
}

// explain asks the inspector about an object and shows the answer.
func explain(ctx context.Context, w io.Writer, o explainOptions) error {
	ask, err := o.asking.asker()
	if err != nil {
		return err
	}
	id, err := ask.find(ctx, o)
	if err != nil {
		return err
	}
	query := url.Values{"framework": {id.Framework}, "namespace": {id.Namespace}, "name": {id.Name}}
	if write := o.draws(); write != nil {
		g, err := ask.graph(ctx, id, query, o.graph)
		if err != nil {
			return err
		}
		return write(g, w)
	}
	var object inspector.Object
	if err := ask.get(ctx, "object", query, &object); err != nil {
		return err
	}
	if o.changes {
		object.Reconciliations = slices.DeleteFunc(object.Reconciliations, func(r inspector.Reconciliation) bool {
			return r.Error == "" && !slices.ContainsFunc(r.Resources, func(r framework.ResourceRecord) bool { return len(r.Changes) > 0 })
		})
	}
	object.Reconciliations = object.Reconciliations[:min(o.last, len(object.Reconciliations))]
	if o.output.format == outputJSON {
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(object)
	}
	return writeExplanation(w, &object, o.output.text(w), time.Now())
}
