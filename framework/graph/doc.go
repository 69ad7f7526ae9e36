// Package graph holds pictures of what an object consists of and what depends on what. The inspector shows them, and
// "explain -o dot" and "-o mermaid" write them.
package graph
