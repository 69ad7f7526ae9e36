package operatortest

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
)

// changes are what has changed, as far as an operator could know.
type changes struct {
	mu       sync.Mutex
	versions []int64            // the resource versions, sorted
	requests map[string]Request // for the objects that are there
	writes   []written          // in their order
}

// written is a write that was carried out, with the resource version that its answer has: that of before when it changed nothing, 0 when there is none.
type written struct {
	request Request
	version int64
}

// add notes a resource version.
func (c *changes) add(version int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i, known := slices.BinarySearch(c.versions, version); !known && version > 0 {
		c.versions = slices.Insert(c.versions, i, version)
	}
}

// enter notes a write.
func (c *changes) enter(request Request, version int64) {
	c.add(version)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes = append(c.writes, written{request, version})
}

// has is whether a resource version was noted.
func (c *changes) has(version string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.versions, func(v int64) bool { return strconv.FormatInt(v, 10) == version })
}

// wrote returns the writes so far.
func (c *changes) wrote() []written {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.writes)
}

// before returns the version right before the last n changes, or before all of them when there were fewer; 0 when there were none.
func (c *changes) before(n int) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.versions) == 0 || n <= 0 {
		return 0
	}
	return c.versions[max(0, len(c.versions)-n)] - 1
}

// tell notes whether an object is there.
func (c *changes) tell(object Request, there bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := object.resource() + " " + object.Namespace + "/" + object.Name
	if !there {
		delete(c.requests, key)
		return
	}
	if c.requests == nil {
		c.requests = map[string]Request{}
	}
	c.requests[key] = object
}

// object returns one of the objects that are there: the n-th by kind and name, beginning anew where there are fewer. What every namespace has
// is none.
func (c *changes) object(n int) (Request, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(c.requests)), func(key string) bool {
		return c.requests[key].Name == "kube-root-ca.crt"
	})
	if len(keys) == 0 {
		return Request{}, false
	}
	return c.requests[keys[n%len(keys)]], true
}

// named is a request for an object of the kind that another one is about.
func named(request Request, meta objectMeta) Request {
	return Request{Group: request.Group, Version: request.Version, Resource: request.Resource,
		Namespace: cmp.Or(meta.Namespace, request.Namespace), Name: meta.Name}
}

// after is whether the write changed something after a resource version.
func (w written) after(version int64) bool {
	return w.version == 0 || w.version > version || w.request.Verb == "delete" || w.request.Verb == "deletecollection"
}

// wrote notes a write that was carried out.
func (l *Lag) wrote(request Request, resp *http.Response) error {
	body, err := readAnswer(request, resp)
	if err != nil {
		return err
	}
	meta := readMeta(body)
	l.changes.enter(request, meta.version())
	if resp.StatusCode == http.StatusCreated && request.Subresource == "" && meta.UID != "" {
		l.changes.tell(named(request, meta), true)
	}
	if l.witness != nil {
		l.witness.enter(request, body)
	}
	return nil
}
