package keyedresource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
)

// JournalPrefix is what the name of the annotation begins with in which a journal stands; a hash of the operator, the framework and
// the resource follows. Its value is a JSON object: "of" names these, "for" and "uid" are the primary, and "keys" are the keys.
const JournalPrefix = "operatorkit.io/journal-"

// journal is what stands in the annotations of a primary about the things that may be there for it: their keys, by the mark of the
// resource that put them. Each write of it is one of the life and the version of the primary that was read. All methods may be
// called on nil, which has no keys and writes nothing. It is used by one reconciliation.
type journal struct {
	client  client.Client
	primary *metav1.PartialObjectMetadata
	// gone says why nothing can be put for the primary any more, if it is not there.
	gone error
	// pages are those of the resource's marks: the present one, and then those of former names.
	pages []page
	// inherited are the keys that an object of the same name had that lived before, as after a restore. What is desired of them is
	// taken over. The rest is left alone: it may be another's by now, or still be that of the object that was backed up, elsewhere.
	inherited sets.Set[string]
	// copied is the primary whose journal this one carries, if it is a copy of that.
	copied string
}

// page is what stands in one annotation.
type page struct {
	mark identity.Mark
	keys sets.Set[string]
	// signed tells that it says of which primary, and of which life of that, it is.
	signed bool
}

type pageText struct {
	Of string `json:"of"`
	// For is the name of the primary, with its namespace, and UID that of its life. Pages of earlier versions have neither.
	For  string    `json:"for,omitempty"`
	UID  types.UID `json:"uid,omitempty"`
	Keys []string  `json:"keys"`
}

func (p page) annotation() string { return JournalPrefix + p.mark.Hash() }

// readJournal reads the journal of a primary, without one nil. It asks the API server, because a copy may not know what was noted
// last. What is gone already has that of its last known state, also if another object has its name by now.
func (r *resource[O, T]) readJournal(ctx context.Context, obj O, own ownership) (*journal, error) {
	if r.config.Journal == nil {
		return nil, nil
	}
	given, ok := any(obj).(client.Object)
	if !ok {
		return nil, framework.Permanent(fmt.Errorf("a %T has no annotations for a journal", obj))
	}
	gvk, err := r.config.Journal.GroupVersionKindFor(given)
	if err != nil {
		return nil, framework.Permanent(fmt.Errorf("find the kind of the primary: %w: register its type in the client's scheme", err))
	}
	j := &journal{client: r.config.Journal, primary: &metav1.PartialObjectMetadata{}, inherited: sets.New[string]()}
	j.primary.SetGroupVersionKind(gvk)
	err = j.client.Get(ctx, client.ObjectKeyFromObject(given), j.primary)
	switch {
	case apierrors.IsNotFound(err):
		j.outlive(given, gvk, err)
	case err != nil:
		return nil, fmt.Errorf("read the journal of the primary: %w", err)
	case given.GetUID() != "" && given.GetUID() != j.primary.UID:
		resource := schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}
		j.outlive(given, gvk, apierrors.NewConflict(resource, given.GetName(), errors.New("it was replaced by another object of its name")))
	}
	for _, mark := range own.marks {
		if err := j.read(mark, r.config.Mark != nil); err != nil {
			return nil, err
		}
	}
	return j, nil
}

// outlive makes the journal that of a primary that is not there any more: what was known of it last. It can be deleted by, and not be
// written.
func (j *journal) outlive(last client.Object, gvk schema.GroupVersionKind, why error) {
	j.gone = fmt.Errorf("read the journal of the primary: %w", why)
	j.primary = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: last.GetNamespace(), Name: last.GetName(), UID: last.GetUID(), ResourceVersion: last.GetResourceVersion(),
		Annotations: last.GetAnnotations(),
	}}
	j.primary.SetGroupVersionKind(gvk)
}

// read reads the page of a mark. One that was copied from another primary says nothing of this one. Where things hold marks, these say
// whose they are, and the page of an earlier life is as good as one's own.
func (j *journal) read(mark identity.Mark, marked bool) error {
	p := page{mark: mark, keys: sets.New[string]()}
	if text := j.primary.Annotations[p.annotation()]; text != "" {
		var read pageText
		if err := json.Unmarshal([]byte(text), &read); err != nil {
			return framework.Permanent(fmt.Errorf("read the journal in the annotation %s of the primary: %w: mend it, "+
				"or delete it and what %s has made", p.annotation(), err, mark))
		}
		switch {
		case read.For != "" && read.For != j.name():
			j.copied = read.For
		case read.UID != "" && j.primary.UID != "" && read.UID != j.primary.UID && !marked:
			j.inherited.Insert(read.Keys...)
		default:
			p.keys.Insert(read.Keys...)
			p.signed = read.For == j.name() && read.UID == j.primary.UID
		}
	}
	j.pages = append(j.pages, p)
	return nil
}

// name is the name of the primary, with its namespace.
func (j *journal) name() string {
	if j.primary.Namespace == "" {
		return j.primary.Name
	}
	return j.primary.Namespace + "/" + j.primary.Name
}

// standing returns an error if the primary is gone, for which nothing can be put then.
func (j *journal) standing() error {
	if j == nil {
		return nil
	}
	return j.gone
}

// bequest returns the inherited keys that are desired, in their order.
func (j *journal) bequest(desired func(key string) bool) (keys []string) {
	if j == nil {
		return nil
	}
	for _, key := range sets.List(j.inherited) {
		if desired(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// lacks is the claim on a thing that exists and whose key is not in the journal.
func (j *journal) lacks(key string) claim {
	switch {
	case j.inherited.Has(key):
		return claim{Claim: keyed.Claim{Holder: keyed.Free}, inherited: true}
	case j.copied != "":
		return free("it exists already, and the journal of the primary is a copy of that of " + j.copied)
	}
	return free("it exists already, and is not in the journal of the primary")
}

// keys returns all keys in their order.
func (j *journal) keys() []string {
	if j == nil {
		return nil
	}
	all := sets.New[string]()
	for _, p := range j.pages {
		all = all.Union(p.keys)
	}
	return sets.List(all)
}

func (j *journal) has(key string) bool {
	return j != nil && slices.ContainsFunc(j.pages, func(p page) bool { return p.keys.Has(key) })
}

// former returns the mark of a former name under which alone a key stands.
func (j *journal) former(key string) identity.Mark {
	if j == nil || j.pages[0].keys.Has(key) {
		return identity.Mark{}
	}
	for _, p := range j.pages {
		if p.keys.Has(key) {
			return p.mark
		}
	}
	return identity.Mark{}
}

// add notes keys under the present name, and returns when that is written.
func (j *journal) add(ctx context.Context, keys []string) error {
	return j.write(ctx, func(at int, p page) {
		if at == 0 {
			p.keys.Insert(keys...)
		} else {
			p.keys.Delete(keys...)
		}
	})
}

// remove takes keys from the journal.
func (j *journal) remove(ctx context.Context, keys []string) error {
	return j.write(ctx, func(_ int, p page) { p.keys.Delete(keys...) })
}

// unsigned tells whether there are keys of which it is not written whose they are: in a copy they would pass for those of the copy.
func (j *journal) unsigned() bool {
	return j != nil && slices.ContainsFunc(j.pages, func(p page) bool { return p.keys.Len() > 0 && !p.signed })
}

// write writes the pages that change, and those that are not signed.
func (j *journal) write(ctx context.Context, change func(at int, p page)) error {
	if j == nil {
		return nil
	}
	annotations := map[string]any{}
	pages := make([]page, 0, len(j.pages))
	for at, before := range j.pages {
		p := page{before.mark, before.keys.Clone(), true}
		change(at, p)
		pages = append(pages, p)
		switch {
		case p.keys.Equal(before.keys) && (before.signed || p.keys.Len() == 0):
		case p.keys.Len() == 0:
			annotations[p.annotation()] = nil
		default:
			text, err := json.Marshal(pageText{p.mark.String(), j.name(), j.primary.UID, sets.List(p.keys)})
			if err != nil {
				return err
			}
			annotations[p.annotation()] = string(text)
		}
	}
	if len(annotations) == 0 {
		return nil
	}
	document, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": j.primary.UID, "resourceVersion": j.primary.ResourceVersion, "annotations": annotations,
	}})
	if err != nil {
		return err
	}
	manager := client.FieldOwner(j.pages[0].mark.FieldManager())
	err = j.client.Patch(ctx, j.primary, client.RawPatch(types.MergePatchType, document), manager)
	if apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) {
		return framework.Permanent(fmt.Errorf("write the journal of the primary, of %d bytes: %w: an object takes %d bytes of annotations: "+
			"divide what it stands for among several primaries", len(document), err, validation.TotalAnnotationSizeLimitB))
	}
	if err != nil {
		return fmt.Errorf("write the journal of the primary: %w", err)
	}
	j.pages = pages
	return nil
}
