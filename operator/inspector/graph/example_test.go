package graph_test

import (
	"fmt"
	"os"

	"github.com/operatorkit/operatorkit/operator/inspector/graph"
)

// What holds up what is a thick arrow, and states have shapes.
func ExampleGraph_Mermaid() {
	g := &graph.Graph{Title: "Services of prod", Nodes: []graph.Node{
		{ID: "cert-manager", Label: "cert-manager", Versions: []string{"1.14.2", "1.15.0"}, State: graph.Progressing},
		{ID: "ingress", Label: "ingress", State: graph.Waiting, DependsOn: []string{"cert-manager", "cilium"}, WaitsFor: []string{"cert-manager"}},
		{ID: "cilium", Label: "cilium", State: graph.Ready},
	}}
	if err := g.Mermaid(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// ---
	// title: "Services of prod"
	// ---
	// flowchart LR
	//   n0(["cert-manager<br/>1.14.2 → 1.15.0<br/>progressing"]):::progressing
	//   n1["cilium<br/>ready"]:::ready
	//   n2{{"ingress<br/>waiting"}}:::waiting
	//   n0 ==> n2
	//   n1 --> n2
	//   classDef ready fill:#e4f4ea,stroke:#17713c,color:#1b2027
	//   classDef progressing fill:#dfe7fb,stroke:#2f5bd0,color:#1b2027
	//   classDef waiting fill:#faf0dc,stroke:#865500,color:#1b2027
	//   classDef blocked fill:#fbe9e7,stroke:#b3261e,color:#1b2027,stroke-width:3px
	//   classDef removing fill:#f0f2f5,stroke:#59636f,color:#1b2027,stroke-dasharray:6 4
	//   classDef disabled fill:#f0f2f5,stroke:#59636f,color:#1b2027,stroke-dasharray:2 3
	//   classDef unknown fill:#f0f2f5,stroke:#59636f,color:#1b2027,stroke-dasharray:2 3
}
