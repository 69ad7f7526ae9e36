package inspector

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/operatorkit/operatorkit/informer"
)

// Replica is one of those that share the objects of an operator. Without a name it stands for slots that no replica holds
// at the moment.
type Replica struct {
	Name string `json:"name"`
	// This is set for the replica whose page this is.
	This bool `json:"this,omitempty"`
	// Slots are how many slots it holds, and Moving how many of them another replica is to hold next.
	Slots  int `json:"slots"`
	Moving int `json:"moving"`
	// Objects are how many objects are in these, of all frameworks, when it renewed its Lease last.
	Objects int `json:"objects"`
}

// Ring knows which replica has which objects. Its methods are safe for concurrent use.
type Ring interface {
	// Replicas are all of them, by name.
	Replicas() []Replica
	// Owner is the name of the replica that has an object, and empty if none has.
	Owner(key informer.Key) string
	// This is the name of the replica whose ring this is.
	This() string
	// Page returns how the page of a replica is reached from here.
	Page(replica string) (Page, error)
}

// ShareBy shows on the page who has which objects, and has questions about an object answered by the replica that has it. It is called before
// the page is served.
func (i *Inspector) ShareBy(r Ring) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ring = r
}

// sharedBy returns what ShareBy was given, or nil.
func (i *Inspector) sharedBy() Ring {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return i.ring
}

// overviewFor is the overview with what fails or is undone on other replicas, for whoever asks this one.
func (i *Inspector) overviewFor(r *http.Request) Overview {
	o := i.overview()
	ring := i.sharedBy()
	if ring == nil || r.Header.Get(forwardedHeader) != "" {
		return o
	}
	others, unreached := fromOthers[Overview](r, ring, o.Replicas, "overview", nil)
	for _, other := range others {
		o.FailingCount += other.FailingCount
		o.Failing = append(o.Failing, other.Failing...)
		o.FightCount += other.FightCount
		o.Fights = append(o.Fights, other.Fights...)
	}
	slices.SortStableFunc(o.Failing, func(a, b ObjectSummary) int { return b.Last.Compare(a.Last) })
	o.Failing = o.Failing[:min(len(o.Failing), maxFailing)]
	o.Fights = o.Fights[:min(len(o.Fights), maxFailing)]
	o.Unreached = unreached
	return o
}

// listFor reads what is asked for, and is list over all replicas: each tells of the objects that it
// has, and this one of those of which no other tells.
func (i *Inspector) listFor(r *http.Request) (q query, list ObjectList, err error) {
	if q, err = queryOf(r); err == nil {
		list, err = i.listOfAll(r, q)
	}
	return q, list, err
}

func (i *Inspector) listOfAll(r *http.Request, q query) (ObjectList, error) {
	ring := i.sharedBy()
	switch {
	case ring == nil:
		return i.list(r.Context(), q)
	case r.Header.Get(forwardedHeader) != "":
		q.of, q.has = ring.This(), func(key informer.Key) bool { return ring.Owner(key) == ring.This() }
		return i.list(r.Context(), q)
	case q.offset+q.limit > maxMerged:
		return ObjectList{}, badRequest(
			"too many objects: of objects that replicas share, the first %d are listed: search for less", maxMerged)
	}
	wanted := r.URL.Query()
	wanted.Set("offset", "0")
	wanted.Set("limit", strconv.Itoa(q.offset+q.limit))
	others, unreached := fromOthers[ObjectList](r, ring, ring.Replicas(), "objects", wanted)
	all := q
	all.offset, all.limit = 0, q.offset+q.limit
	all.of = "those without " + strings.Join(slices.Sorted(maps.Keys(others)), ", ")
	all.has = func(key informer.Key) bool {
		_, told := others[ring.Owner(key)]
		return !told
	}
	list, err := i.list(r.Context(), all)
	if err != nil {
		return list, err
	}
	list.Objects = slices.Clone(list.Objects) // others have them, too
	for _, other := range others {
		list.Total += other.Total
		list.Objects = append(list.Objects, other.Objects...)
	}
	slices.SortFunc(list.Objects, func(a, b ObjectSummary) int {
		return cmp.Or(strings.Compare(a.Framework, b.Framework), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	list.Objects = list.Objects[min(q.offset, len(list.Objects)):min(q.offset+q.limit, len(list.Objects))]
	list.Unreached = unreached
	return list, nil
}
