// Package graph holds pictures of what an object consists of and what depends on what. The inspector shows them, and
// "explain -o dot", "-o mermaid" and "-o words" write them.
//
// An operator's author draws them in a function, and hands it to inspector.Inspector.Draw, with the framework
// of these objects:
//
//	func draw(_ context.Context, obj any) ([]*graph.Graph, error) {
//		return []*graph.Graph{{Name: "services", Title: "Services of prod", Nodes: []graph.Node{
//			{ID: "cert-manager", Label: "cert-manager", Versions: []string{"1.14.2", "1.15.0"}, State: graph.Progressing},
//			{ID: "ingress", Label: "ingress", Versions: []string{"4.11.0"}, State: graph.Waiting,
//				DependsOn: []string{"cert-manager"}, WaitsFor: []string{"cert-manager"}},
//		}}}, nil
//	}
//
// A [Graph] is written as a picture ([Graph.SVG]), for Graphviz ([Graph.DOT]) or for Mermaid ([Graph.Mermaid]).
//
// # Promises
//
//   - What a node depends on stands left of it, and arrows lead from the dependency to the dependent, so that a picture
//     reads in the order in which things come to be. The exceptions are marked: of a cycle of dependencies one edge leads
//     back, and so may an edge that stands for waiting only.
//   - States are told apart by shape and word as well as by colour.
//   - The same graph gives the same bytes, in whatever order its nodes and their dependencies are.
//   - Every text may be anything: it is shown, and is never markup, an instruction or an address.
//   - Nothing is loaded from elsewhere, and there are no scripts and no style attributes.
package graph
