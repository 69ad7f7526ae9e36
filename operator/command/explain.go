package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/inspector"
)

// explainTimeout is how long "explain" waits for the operator.
const explainTimeout = 30 * time.Second

// maxAnswer is how many bytes of an answer are read: more than an inspector keeps of one object.
const maxAnswer = 64 << 20

// explainOptions are the values of the flags of "explain".
type explainOptions struct {
	output outputOptions
	kind   string
	name   string
	// namespace is that of the flag, else that of the connection.
	namespace string
	address   string
	last      int
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
			"operator draws of it, if it does. Of several, --graph names the one.\n\n" +
			"It asks the operator's inspector. For one in a Pod, forward its port first, such as with\n" +
			"\"kubectl port-forward deployment/" + p.config.Name + " 8082\".",
		Example: p.examples("explain home", "explain website home -n default -o json", "explain home -o dot | dot -Tsvg > home.svg"),
		Args:    understood(cobra.RangeArgs(1, 2)),
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
				return &usageError{errors.New("--graph needs " + orOf([]string{"-o " + outputDOT, "-o " + outputMermaid}))}
			}
			if o.namespace == "" {
				connection, err := p.connect()
				if err != nil {
					return fmt.Errorf("%w: or give --namespace", err)
				}
				o.namespace = connection.namespace
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
	flags.StringVar(&o.address, "inspector-address", inspector.DefaultAddress, "host and port of the inspector of the operator that runs")
	flags.IntVar(&o.last, "last", 5, "how many reconciliations to show")
	flags.StringVar(&o.graph, "graph", "", "name of the graph to write with -o dot or -o mermaid (default the first)")
	o.output.others = []string{outputDOT, outputMermaid}
	o.output.flags(flags)
	withoutVariables(flags, "namespace", "last", "graph")
	return cmd
}

// explain asks the inspector about an object and shows the answer.
func explain(ctx context.Context, w io.Writer, o explainOptions) error {
	// A connection of its own, closed at the end, leaves nothing behind.
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	ask := asker{client: &http.Client{Transport: transport}, address: o.address}

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
	object.Reconciliations = object.Reconciliations[:min(o.last, len(object.Reconciliations))]
	if o.output.format == outputJSON {
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(object)
	}
	return writeExplanation(w, &object, o.output.text(w), time.Now())
}

// asker asks an inspector.
type asker struct {
	client  *http.Client
	address string
}

// get asks for one thing. What the inspector says in place of an answer is an error.
func (a asker) get(ctx context.Context, what string, query url.Values, answer any) error {
	fault := func(err error) error { return fmt.Errorf("ask the inspector at %s: %w", a.address, err) }
	target := url.URL{Scheme: "http", Host: a.address, Path: inspector.Path + "api/v1/" + what, RawQuery: query.Encode()}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), http.NoBody)
	if err != nil {
		return &usageError{fmt.Errorf("--inspector-address: %w", err)}
	}
	response, err := a.client.Do(request)
	if err != nil {
		return fault(fmt.Errorf("%w: is the operator running there, with its --inspector-address?", errors.Unwrap(err)))
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return fault(err)
	}
	if response.StatusCode != http.StatusOK {
		return fault(fmt.Errorf("%s: %s", response.Status, clipped(body)))
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return fault(fmt.Errorf("it does not answer as an inspector does: %w", err))
	}
	return nil
}

// find returns the one object that is meant.
func (a asker) find(ctx context.Context, o explainOptions) (inspector.ObjectSummary, error) {
	var list inspector.ObjectList
	if err := a.get(ctx, "objects", url.Values{"kind": {o.kind}, "name": {o.name}}, &list); err != nil {
		return inspector.ObjectSummary{}, err
	}
	var found []inspector.ObjectSummary
	for _, s := range list.Objects {
		if s.Namespace == o.namespace || s.Namespace == "" {
			found = append(found, s)
		}
	}
	switch len(found) {
	case 0:
		return inspector.ObjectSummary{}, fmt.Errorf("the operator at %s knows no %q in namespace %q: are KIND and --namespace right?",
			a.address, strings.TrimSpace(o.kind+" "+o.name), o.namespace)
	case 1:
		return found[0], nil
	}
	return inspector.ObjectSummary{}, &usageError{fmt.Errorf("the frameworks %q and %q both have a %q: give one of them as KIND",
		found[0].Framework, found[1].Framework, o.name)}
}

// clipped is the beginning of an answer that is not understood.
func clipped(body []byte) string {
	const most = 300
	return fmt.Sprintf("%.*q", most, body)
}
