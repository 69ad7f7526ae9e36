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

// States are all states, in the order in which a legend has them.
func States() []State {
	return []State{Ready, Progressing, Waiting, Blocked, Removing, Disabled, Unknown}
}

// Known returns the state itself, or Unknown for one that is none of States.
func (s State) Known() State {
	if _, ok := looks[s]; ok {
		return s
	}
	return Unknown
}

// Icon returns the path of the drawing of the state: a line in a square of 12 by 12.
func (s State) Icon() string { return looks[s.Known()].icon }

// look is how a state is drawn so that it is known without colours.
type look struct {
	// icon is a path in a square of 12.
	icon string
	// shape and style are Graphviz's, fill and line are colours on a light ground.
	shape, style, fill, line string
	// open and closed are the brackets that make the shape for Mermaid.
	open, closed string
}

var looks = map[State]look{
	Ready:       {"M2 6.5 4.8 9.3 10 3", "box", "rounded,filled", "#e4f4ea", "#17713c", "[", "]"},
	Progressing: {"M1.5 6h8.5 M6.8 2.6 10.2 6 6.8 9.4", "cds", "filled", "#dfe7fb", "#2f5bd0", "([", "])"},
	Waiting:     {"M6 1.5a4.5 4.5 0 1 0 .01 0z M6 3.5V6l1.8 1.2", "hexagon", "filled", "#faf0dc", "#865500", "{{", "}}"},
	Blocked:     {"M6 1.5 11 10.5H1z M6 5v2.4 M6 9v.1", "octagon", "filled,bold", "#fbe9e7", "#b3261e", "[[", "]]"},
	Removing:    {"M2.5 3h7 M4.6 3V1.6h2.8V3 M3.4 3l.5 7.4h4.2L8.6 3", "box", "dashed,filled", "#f0f2f5", "#59636f", ">", "]"},
	Disabled:    {"M4 2.5v7 M8 2.5v7", "box", "dotted,filled", "#f0f2f5", "#59636f", "[/", "/]"},
	Unknown:     {"M4 4.2a2 2 0 1 1 2.9 1.8Q6 6.5 6 7.4 M6 9.6v.1", "ellipse", "dashed,filled", "#f0f2f5", "#59636f", "(", ")"},
}
