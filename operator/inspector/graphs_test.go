package inspector_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/inspector"
	"github.com/operatorkit/operatorkit/operator/inspector/graph"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// drawing is a hook that draws graphs of a site.
type drawing func(ctx context.Context, site *corev1.ConfigMap) ([]*graph.Graph, error)

// startDrawing runs an operator that draws graphs of its sites.
func startDrawing(t testing.TB, draw drawing, sites ...*corev1.ConfigMap) *world {
	t.Helper()
	source := informer.NewPush(kind)
	for _, s := range sites {
		if err := source.Update(s); err != nil {
			t.Fatal(err)
		}
	}
	config := inspector.Config{Name: "site-operator", Logger: quiet(t)}
	w := startFramework(t, config, framework.Config{
		Source:    source,
		Resources: []framework.Resource{crudOf(t, config.Logger, &pages{written: map[string]*corev1.ConfigMap{}})},
	})
	w.inspector.Draw(w.framework, func(ctx context.Context, obj any) ([]*graph.Graph, error) { return draw(ctx, obj.(*corev1.ConfigMap)) })
	w.reconciled(uint64(len(sites)))
	return w
}

// parts draws two graphs: what a site consists of, where the state of the database is what the site says, and nothing else
// of note.
func parts(_ context.Context, site *corev1.ConfigMap) ([]*graph.Graph, error) {
	switch site.Data["draw"] {
	case "nothing":
		return nil, nil
	case failsKey:
		return nil, errors.New("the paper is wet")
	case "panic":
		panic("no pencil")
	}
	return []*graph.Graph{
		{Name: "parts", Title: "Parts of " + site.Name, Nodes: []graph.Node{
			{ID: "database", Label: "database", State: graph.State(site.Data["database"]), Versions: []string{"16.4", "17.2"}, Group: "team-blue", Message: "it restores a backup"},
			{ID: "shop", Label: "shop", State: graph.Waiting, DependsOn: []string{"database", "cache"}, WaitsFor: []string{"database"}},
			{ID: "cache", Label: "cache", State: graph.Ready},
			{ID: "front", Label: "front", State: graph.Waiting, DependsOn: []string{"shop"}, WaitsFor: []string{"shop"}, Message: "shop is not there"},
		}},
		{Name: "regions & zones", Title: "Regions", Nodes: []graph.Node{{ID: "eu", Label: "europe", State: graph.Ready}}},
	}, nil
}

func graphsPath(name string, more ...string) string {
	values := queryOf(name)
	for i := 0; i+1 < len(more); i += 2 {
		values.Set(more[i], more[i+1])
	}
	return "graphs?" + values.Encode()
}

func TestGraphsAreAnsweredAsJSON(t *testing.T) {
	w := startDrawing(t, parts, site("home", "database", "progressing"), site("bare", "draw", "nothing"))
	want, err := parts(t.Context(), site("home", "database", "progressing"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, read[inspector.GraphList](w, graphsPath("home")).Graphs); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := w.get("api/v1/"+graphsPath("bare"), http.StatusOK); got != `{"graphs":[]}`+"\n" {
		t.Errorf("of an object without graphs the answer is %s", got)
	}
}

func TestGraphsAreWrittenInOtherFormats(t *testing.T) {
	w := startDrawing(t, parts, site("home"))
	for _, test := range []struct{ graph, format, contentType, has string }{
		{"", "dot", "text/plain; charset=utf-8", "\t\"database\" -> \"shop\" [class=\"waits\""},
		{"regions & zones", "dot", "text/plain; charset=utf-8", "\t\"eu\" [label=\"europe"},
		{"parts", "mermaid", "text/plain; charset=utf-8", "flowchart LR\n"},
		{"parts", "svg", "image/svg+xml", "<style>"},
	} {
		answer, err := w.client.Get(w.url + "/inspector/api/v1/" + graphsPath("home", "graph", test.graph, "format", test.format))
		has(t, w.text(answer, err, http.StatusOK), test.has)
		if got := answer.Header.Get("Content-Type"); got != test.contentType {
			t.Errorf("%s is of type %q", test.format, got)
		}
	}
}

func TestGraphsThatAreNotThereAreToldSo(t *testing.T) {
	w := startDrawing(t, parts, site("home"), site("bare", "draw", "nothing"), site("broken", "draw", failsKey), site("panics", "draw", "panic"))
	for path, want := range map[string]struct {
		status int
		says   string
	}{
		graphsPath("absent"): {http.StatusNotFound, `{"error":"sites.example.com \"default/absent\" not found"}`},
		"graphs?" + url.Values{"framework": {"other"}, "name": {"home"}}.Encode(): {http.StatusNotFound, `not found"}`},
		graphsPath("home", "format", "pdf"):                                       {http.StatusBadRequest, `{"error":"format must be dot, mermaid or svg, is \"pdf\""}`},
		graphsPath("home", "format", "dot", "graph", "roots"):                     {http.StatusNotFound, `there is no graph \"roots\" of this object, but [\"parts\" \"regions \u0026 zones\"]`},
		graphsPath("bare", "format", "dot"):                                       {http.StatusNotFound, "there are no graphs of this object"},
		graphsPath("broken"):                                                      {http.StatusInternalServerError, "draw the graphs of Site default/broken: the paper is wet"},
		graphsPath("panics"):                                                      {http.StatusInternalServerError, "draw the graphs of Site default/panics: panic: value of type string in github.com/operatorkit/operatorkit/operator/inspector_test.parts (graphs_test.go:55)"},
	} {
		has(t, w.get("api/v1/"+path, want.status), want.says)
	}
}

func TestPageShowsGraphsWithoutScript(t *testing.T) {
	w := startDrawing(t, parts, site("home", "database", "blocked"), site("bare", "draw", "nothing"))
	page := w.get(drawnPath("home"), http.StatusOK)
	has(t, page, "Parts of home", `<svg xmlns="http://www.w3.org/2000/svg" class="graph"`, `class="node blocked"`, `id="row-graph-node-front"`, "shop is not there",
		"regions &amp; zones</a>", "graph=regions&#43;%26&#43;zones", "format=mermaid")
	lacks(t, page, "europe")
	page = w.get(drawnPath("home")+"&graph=regions+%26+zones", http.StatusOK)
	has(t, page, "europe", `class="node ready"`)
	lacks(t, page, "Parts of home")
	lacks(t, w.get(drawnPath("bare"), http.StatusOK), "graphs-title")
	lacks(t, w.get(drawnPath("home"), http.StatusOK), "style=")
	has(t, w.get("assets/style.css", http.StatusOK), "--panel:", ".graph .card")
}

func TestPageShowsWhyThereIsNoGraph(t *testing.T) {
	w := startDrawing(t, parts, site("home"), site("broken", "draw", failsKey), site("panics", "draw", "panic"))
	has(t, w.get(drawnPath("broken"), http.StatusOK), "draw the graphs of Site default/broken: the paper is wet", "Last reconciliations")
	has(t, w.get(drawnPath("panics"), http.StatusOK), "panic: value of type string in github.com/operatorkit/operatorkit/operator/inspector_test.parts (graphs_test.go:55)", "Last reconciliations")
	has(t, w.get(drawnPath("home")+"&graph=roots", http.StatusOK), "there is no graph &#34;roots&#34;", ">parts</a>")
}

func TestSlowGraphDelaysNoOtherPage(t *testing.T) {
	var drawing sync.WaitGroup
	began := make(chan struct{}, 10)
	w := startDrawing(t, func(ctx context.Context, s *corev1.ConfigMap) ([]*graph.Graph, error) {
		if s.Name == "slow" {
			began <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return parts(ctx, s)
	}, site("home"), site("slow"))
	// More drawings than go on at once, each of them until its request ends.
	ctx, cancel := context.WithCancel(t.Context())
	for range 4 {
		drawing.Go(func() {
			request := w.request(http.MethodGet, "api/v1/"+graphsPath("slow"), nil).WithContext(ctx)
			if answer, err := w.client.Do(request); err == nil {
				answer.Body.Close()
			}
		})
		<-began
	}
	for _, name := range []string{"home", "slow"} {
		has(t, w.get(objectPath(name), http.StatusOK), "Last reconciliations", "It is not drawn after 1s.", "wait=true#graphs")
	}
	cancel()
	drawing.Wait()
	operatortest.Eventually(t, "the graph is drawn", func() bool {
		return strings.Contains(w.get(objectPath("home"), http.StatusOK), "Parts of home")
	})
}

func TestGraphThatIsTooLargeIsOfferedInOtherFormats(t *testing.T) {
	w := startDrawing(t, func(_ context.Context, site *corev1.ConfigMap) ([]*graph.Graph, error) {
		g := &graph.Graph{Name: "large"}
		for i := range 501 {
			n := graph.Node{ID: fmt.Sprint("n", i)}
			if site.Name == "dense" && i < 80 {
				for j := range i {
					n.DependsOn = append(n.DependsOn, fmt.Sprint("n", j))
				}
			}
			if site.Name == "dense" {
				n.WaitsFor = n.DependsOn
			}
			if site.Name != "dense" || i < 80 {
				g.Nodes = append(g.Nodes, n)
			}
		}
		return []*graph.Graph{g}, nil
	}, site("many"), site("dense"))
	for name, says := range map[string]string{"many": "The graph has 501 nodes and 0 dependencies", "dense": "The graph has 80 nodes and 6\u202f320 dependencies"} {
		page := w.get(drawnPath(name), http.StatusOK)
		has(t, page, says, "format=dot")
		lacks(t, page, `class="node`)
		has(t, w.get("api/v1/"+graphsPath(name, "format", "dot"), http.StatusOK), `"n79"`)
	}
}

func TestLegendTellsWhatIsThere(t *testing.T) {
	w := startDrawing(t, func(_ context.Context, site *corev1.ConfigMap) ([]*graph.Graph, error) {
		g := &graph.Graph{Name: "g", Nodes: []graph.Node{{ID: "a", State: graph.Ready}, {ID: "b", State: graph.Blocked, DependsOn: []string{"a"}}}}
		if site.Name == "cyclic" {
			g.Nodes[0].DependsOn = []string{"b"}
		}
		return []*graph.Graph{g}, nil
	}, site("plain"), site("cyclic"))
	page := w.get(drawnPath("plain"), http.StatusOK)
	has(t, page, `class="state graph-ready"`, `class="state graph-blocked"`)
	lacks(t, page, "graph-waiting", "holds up what it leads to", "closes a cycle")
	has(t, w.get(drawnPath("cyclic"), http.StatusOK), "closes a cycle of dependencies")
}

func TestHostileGraphIsText(t *testing.T) {
	const script = `"><img src=x onerror="window.pwned=1"><script>window.pwned=1</script></svg><svg onload=window.pwned=1>`
	w := startDrawing(t, hostileGraph(script), site("home"))
	page := w.get(drawnPath("home"), http.StatusOK)
	lacks(t, page, "<img src=x", "<script>window", "<svg onload")
	has(t, page, "&lt;script&gt;")
}

// hostileGraph draws graphs of which every text is the same.
func hostileGraph(text string) drawing {
	return func(context.Context, *corev1.ConfigMap) ([]*graph.Graph, error) {
		node := graph.Node{ID: text, Label: text, Versions: []string{text, "1.0"}, State: graph.State(text), Message: text, Group: text}
		other := graph.Node{ID: "other", Label: strings.ToUpper(text), DependsOn: []string{text}, WaitsFor: []string{text}, State: graph.Waiting}
		g := &graph.Graph{Name: text, Title: text, Nodes: []graph.Node{node, other}}
		return []*graph.Graph{g, {Name: text + "2", Title: text}}, nil
	}
}

func TestStreamTellsOfTheObjectBeforeItsReconciliationHasEnded(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	w := start(t, inspector.Config{}, []*corev1.ConfigMap{versioned("home", "1")}, &plain{name: "slow", do: func(_ context.Context, site *corev1.ConfigMap) error {
		if site.ResourceVersion != "1" {
			<-release
		}
		return nil
	}})
	w.reconciled(1)
	told := w.follow("home")
	before := told()
	w.put(versioned("home", "2"))
	if after := told(); before == after {
		t.Errorf("the same version %s was told twice", before)
	}
}

// versioned is a site at a resource version.
func versioned(name, version string) *corev1.ConfigMap {
	s := site(name, "version", version)
	s.ResourceVersion = version
	return s
}

// follow returns a function that waits for the next version of the page of a site that its stream tells.
func (w *world) follow(name string) func() string {
	w.t.Helper()
	answer, err := w.client.Get(w.url + "/inspector/events?" + queryOf(name).Encode())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = answer.Body.Close() })
	lines := bufio.NewScanner(answer.Body)
	return func() string {
		w.t.Helper()
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return data
			}
		}
		w.t.Fatalf("the stream has ended: %v", lines.Err())
		return ""
	}
}
