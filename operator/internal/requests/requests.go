// Package requests tells what requests to an API server, or to another system, are for, and which of them may change something.
package requests

import (
	"net/http"
	"slices"
	"strings"
)

// Writes tells whether a request may change something. Those that read do not, nor do dry runs of Kubernetes and its questions. What opens
// a connection may, such as exec in a Pod: over WebSockets it is a GET, and nobody knows what is sent then. Other requests by GET to Pods,
// Services and nodes through the API server (proxy) count as reading, as elsewhere.
func Writes(r *http.Request) bool {
	target := TargetOf(r.URL.Path)
	if target.connects() || switches(r.Header) {
		return true
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	return !IsDryRun(r) && !target.IsQuestion()
}

// switches tells whether a request asks for another protocol than HTTP. Clients of Kubernetes set Upgrade behind the transports that look at a
// request, and the protocols of WebSockets before them.
func switches(h http.Header) bool {
	return h.Get("Upgrade") != "" || h.Get("Sec-WebSocket-Protocol") != ""
}

// IsDryRun tells whether the query of a request asks the API server to store nothing. Deletions may say so in their body.
func IsDryRun(r *http.Request) bool { return slices.Contains(r.URL.Query()["dryRun"], "All") }

// Target is what the path of a request to an API server names. The core group is empty.
type Target struct {
	Group, Version, Resource, Subresource string
	Namespace, Name                       string
}

// IsQuestion tells whether what is created there is an answer only, and never stored: reviews, and tokens of service accounts.
func (t Target) IsQuestion() bool {
	switch t.Group {
	case "authorization.k8s.io", "authentication.k8s.io":
		return true
	case "":
		return t.Resource == "serviceaccounts" && t.Subresource == "token"
	}
	return false
}

// connects tells whether a connection into a Pod is opened there.
func (t Target) connects() bool {
	return t.Group == "" && t.Resource == "pods" && slices.Contains([]string{"exec", "attach", "portforward"}, t.Subresource)
}

// TargetOf reads /api/{version}/… and /apis/{group}/{version}/…, behind whatever path the server's own URL has, and then
// [namespaces/{namespace}/]{resource}[/{name}[/{subresource}]]. Of other paths it is zero.
func TargetOf(path string) (t Target) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	root := slices.IndexFunc(parts, func(part string) bool { return part == "api" || part == "apis" })
	if root < 0 {
		return Target{}
	}
	prefix := 2 // api and the version
	if parts[root] == "apis" {
		prefix = 3 // apis, the group and the version
	}
	parts = parts[root:]
	if len(parts) <= prefix {
		return Target{}
	}
	if prefix == 3 {
		t.Group = parts[1]
	}
	t.Version = parts[prefix-1]
	parts = parts[prefix:]

	if parts[0] == "namespaces" && len(parts) > 2 && !isNamespaceSubresource(parts[2]) {
		t.Namespace = parts[1]
		parts = parts[2:]
	}
	t.Resource = parts[0]
	if len(parts) > 1 {
		t.Name = parts[1]
	}
	if len(parts) > 2 {
		t.Subresource = parts[2]
	}
	return t
}

// isNamespaceSubresource tells /namespaces/{name}/status from /namespaces/{namespace}/pods.
func isNamespaceSubresource(part string) bool { return part == "status" || part == "finalize" }
