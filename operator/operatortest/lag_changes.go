package operatortest

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
)

// changes are what has changed, as far as an operator could know.
type changes struct {
	mu       sync.Mutex
	versions []int64   // the resource versions, sorted
	writes   []written // in their order
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
	l.changes.enter(request, readMeta(body).version())
	if l.witness != nil {
		l.witness.enter(request, body)
	}
	return nil
}
