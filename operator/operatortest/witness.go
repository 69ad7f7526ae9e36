package operatortest

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// witness knows the writes of an operator in a run that were carried out, and tells those that are wrong even when they are made good later:
// that it deleted what has to stay, and that it set something back to an earlier state.
type witness struct {
	namespace string

	mu    sync.Mutex
	phase int
	past  map[deedKey]*past
	deeds []deed
}

// deedKey names an object in all runs of a scenario.
type deedKey struct {
	resource schema.GroupVersionResource
	name     string // with "<namespace>" for that of the run's namespace
}

// deed is a deletion, or a write that set an object back.
type deed struct {
	phase    int
	key      deedKey
	deletion bool
	request  Request
}

// past are the contents that an object had after the operator's writes.
type past struct {
	uid      types.UID
	newest   int64 // the resource version after the newest of them
	contents [][sha256.Size]byte
}

func newWitness(namespace string) *witness {
	return &witness{namespace: namespace, past: map[deedKey]*past{}}
}

// begin says which phase the writes belong to that come now.
func (w *witness) begin(phase int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.phase = phase
}

// enter notes a write and its answer.
func (w *witness) enter(request Request, answer []byte) {
	var object map[string]any
	if json.Unmarshal(answer, &object) != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch request.Verb {
	case "delete":
		w.deeds = append(w.deeds, deed{phase: w.phase, key: w.key(request), deletion: true, request: request})
	case "deletecollection":
		var list struct {
			Items []json.RawMessage `json:"items"`
		}
		if json.Unmarshal(answer, &list) != nil {
			return
		}
		for _, item := range list.Items {
			one := request
			one.Name = readMeta(item).Name
			w.deeds = append(w.deeds, deed{phase: w.phase, key: w.key(one), deletion: true, request: one})
		}
	default:
		w.changed(request, readMeta(answer), object)
	}
}

// changed notes what an object is after a write.
func (w *witness) changed(request Request, is objectMeta, object map[string]any) {
	request.Name = is.Name
	if request.Subresource != "" || is.UID == "" {
		return
	}
	key := w.key(request)
	known := w.past[key]
	if known == nil || known.uid != is.UID {
		known = &past{uid: is.UID}
		w.past[key] = known
	}
	version := is.version()
	if version < known.newest {
		return // One answer has overtaken another.
	}
	known.newest = version
	now := contentOf(object)
	if at := slices.Index(known.contents, now); at >= 0 && at < len(known.contents)-1 {
		w.deeds = append(w.deeds, deed{phase: w.phase, key: key, request: request})
	}
	if len(known.contents) == 0 || known.contents[len(known.contents)-1] != now {
		known.contents = append(known.contents, now)
	}
}

// contentOf is what an author decides about an object: all but its status, and of its metadata the labels and annotations.
func contentOf(object map[string]any) [sha256.Size]byte {
	content := map[string]any{}
	for field, value := range object {
		if field != "status" && field != "metadata" {
			content[field] = value
		}
	}
	if metadata, ok := object["metadata"].(map[string]any); ok {
		content["metadata"] = []any{metadata["labels"], metadata["annotations"]}
	}
	text, err := json.Marshal(content)
	if err != nil {
		return [sha256.Size]byte{} // what was decoded can be encoded
	}
	return sha256.Sum256(text)
}

func (w *witness) key(request Request) deedKey {
	return deedKey{
		resource: schema.GroupVersionResource{Group: request.Group, Version: request.Version, Resource: request.Resource},
		name:     strings.ReplaceAll(request.Name, w.namespace, "<namespace>"),
	}
}

// seen are the deletions and set-backs, by phase.
func (w *witness) seen() []deed {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.deeds)
}

// wrong returns the deeds that runs without a mishap do not have: deletions of what is there at the end of the phase all the same, and what set
// objects back that are never set back else. Of objects whose names the API server generates no deletion is wrong: that one too many was
// made, of those that are there alike, and taken away again is what operators are to do.
func wrong(deeds, calm []deed, expected []snapshot, mapper meta.RESTMapper) []deed {
	return slices.DeleteFunc(deeds, func(d deed) bool {
		if !d.deletion {
			return slices.ContainsFunc(calm, func(c deed) bool { return !c.deletion && c.key == d.key })
		}
		if slices.ContainsFunc(calm, func(c deed) bool { return c.deletion && c.phase == d.phase && c.key == d.key }) {
			return true
		}
		kind, err := mapper.KindFor(d.key.resource)
		if err != nil || d.phase >= len(expected) {
			return true
		}
		_, stays := expected[d.phase].objects[titleOf(kind.GroupKind(), d.key.name)]
		return !stays
	})
}

// String says what is wrong with it.
func (d deed) String() string {
	if d.deletion {
		return fmt.Sprintf("the operator deleted what has to stay: %s", d.request)
	}
	return fmt.Sprintf("the operator set back to an earlier state: %s", d.request)
}
