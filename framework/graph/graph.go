package graph

// State is how a node is.
type State string

// The states.
const (
	// Ready is as desired.
	Ready State = "ready"
	// Progressing is on its way to what is desired.
	Progressing State = "progressing"
	// Waiting waits for what it depends on.
	Waiting State = "waiting"
	// Blocked does not go on before a person acts.
	Blocked State = "blocked"
	// Removing is on its way out.
	Removing State = "removing"
	// Disabled is kept as it is, on purpose.
	Disabled State = "disabled"
	// Unknown is not known to be anything of this.
	Unknown State = "unknown"
)

// Graph is things of an object, and what they depend on.
type Graph struct {
	// Name tells it from other graphs of the same object.
	Name string `json:"name"`
	// Title says what is drawn, such as "Services of cluster platform/prod".
	Title string `json:"title"`
	// Nodes are the things. Their order does not matter.
	Nodes []Node `json:"nodes,omitempty"`
}

// Node is one thing.
type Node struct {
	// ID is unique in the graph.
	ID string `json:"id"`
	// Label is what people call the node.
	Label string `json:"label"`
	// Versions are the versions on its way, one after the other: now, next, desired. Those that are the same stand once.
	Versions []string `json:"versions,omitempty"`
	// State is how the node is.
	State State `json:"state"`
	// Message says why, in words.
	Message string `json:"message,omitempty"`
	// Group is what the node belongs to together with others, such as the owner of a service. It may be empty.
	Group string `json:"group,omitempty"`
	// DependsOn are the IDs of the nodes that have to be there before this one. IDs of no node are left out of the picture.
	DependsOn []string `json:"dependsOn,omitempty"`
	// WaitsFor are the IDs of the nodes that hold this one up now.
	WaitsFor []string `json:"waitsFor,omitempty"`
}
