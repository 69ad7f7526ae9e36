package operatortest

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/operatorkit/operatorkit/operator/internal/requests"
)

// Request is what a rule sees of a request to an API server, or to another system.
type Request struct {
	// N is the request's number among the counted writes, from 1; 0 when it is
	// not one of them.
	N int
	// Method is the HTTP method.
	Method string
	// Path is the URL's, of a request that names no resource, such as one to another system.
	Path string
	// Verb is the API's: get, list, watch, create, update, patch, delete or
	// deletecollection. Of a request that names no resource it is create, update, patch
	// or delete, as the method says, and else empty.
	Verb string
	// Group, Version, Resource (plural, lower-case) and Subresource are the
	// path's. The core group is empty.
	Group, Version, Resource, Subresource string
	// Namespace is empty for cluster-scoped objects and for all namespaces.
	Namespace string
	// Name is the object's. A create with generateName has the prefix and "*".
	Name string
	// ContentType is the body's: it tells an apply from other patches.
	ContentType string
	// DryRun is whether the server is asked to store nothing.
	DryRun bool
}

// String is, for example, "PUT deployments.apps/status shop/web", or "POST /containers/create".
func (r Request) String() string {
	if r.Resource == "" {
		return strings.TrimSpace(r.Method + " " + r.Path)
	}
	object := strings.Trim(r.Namespace+"/"+r.Name, "/")
	return strings.TrimSpace(r.Method + " " + r.resource() + " " + object)
}

func (r Request) resource() string {
	resource := r.groupResource().String()
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	return resource
}

var writeVerbs = []string{"create", "update", "patch", "delete", "deletecollection"}

func (r Request) isWrite() bool {
	return slices.Contains(writeVerbs, r.Verb) && !r.DryRun && !r.target().IsQuestion()
}

// target is what the path of the request names.
func (r Request) target() requests.Target {
	return requests.Target{Group: r.Group, Version: r.Version, Resource: r.Resource, Subresource: r.Subresource, Namespace: r.Namespace, Name: r.Name}
}

// readRequest tells what a request is for, and takes its body when it is one that
// may write. The body of others stays unread.
func readRequest(req *http.Request) (Request, []byte, error) {
	r := requestOf(req)
	if !slices.Contains(writeVerbs, r.Verb) || req.Body == nil || req.Body == http.NoBody {
		return r, nil, nil
	}
	body, err := io.ReadAll(req.Body)
	if closeErr := req.Body.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return r, nil, fmt.Errorf("read the body of %s: %w", r, err)
	}
	head := readHead(r.ContentType, body)
	if req.Method == http.MethodDelete && slices.Contains(head.DryRun, "All") {
		r.DryRun = true // the others say it in the query, as do deletions without a body
	}
	if r.Name == "" {
		r.Name = head.name()
	}
	return r, body, nil
}

func requestOf(req *http.Request) Request {
	query := req.URL.Query()
	r := Request{
		Method:      req.Method,
		ContentType: mediaType(req.Header),
		DryRun:      requests.IsDryRun(req),
	}
	t := requests.TargetOf(req.URL.Path)
	r.Group, r.Version, r.Resource, r.Subresource, r.Namespace, r.Name = t.Group, t.Version, t.Resource, t.Subresource, t.Namespace, t.Name
	if r.Resource != "" {
		r.Verb = verb(req.Method, r.Name != "", isTrue(query.Get("watch")))
		return r
	}
	r.Path = req.URL.Path
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		r.Verb = verb(req.Method, true, false)
	}
	return r
}

func verb(method string, named, watch bool) string {
	switch method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if named {
			return "delete"
		}
		return "deletecollection"
	case http.MethodGet, http.MethodHead:
		switch {
		case watch:
			return "watch"
		case named:
			return "get"
		}
		return "list"
	}
	return ""
}

func isTrue(value string) bool { return value == "true" || value == "1" }
