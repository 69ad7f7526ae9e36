package keyedresource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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

// journal is what stands in the annotations of a primary about the things that may be there for it:
// their keys, by the mark of the resource that put them. Each write of it is one of the life and
// the version of the primary that was read. It is used by one reconciliation. A nil journal has no
// keys and is not written.
type journal struct {
	client  client.Client
	primary *metav1.PartialObjectMetadata
	// gone says why nothing can be put for the primary any more, if it is not there.
	gone error
	// marks are those of the resource: the present one, and then those of former names. Each has a
	// page, an annotation, and own are the pages which say something about this primary.
	marks []identity.Mark
	own   []bool
	// keys are the keys of things, and which of the marks each stands under.
	keys map[string]int
	// inherited are the keys that an object of the same name had that lived before, as after a restore. What is desired of them is
	// taken over. The rest is left alone: it may be another's by now, or still be that of the object that was backed up, elsewhere.
	inherited sets.Set[string]
	// copied is the primary whose journal this one carries, if it is a copy of that.
	copied string
	// stale are the keys to be removed, and bequest those inherited to be added with what is put.
	stale, bequest []string
}

// journalOf returns the journal that belongs to a state.
func journalOf[T any](s State[T]) *journal {
	j, _ := s.Note.(*journal)
	return j
}

type pageText struct {
	Of string `json:"of"`
	// For is the name of the primary, with its namespace, and UID that of its life.
	For  string    `json:"for"`
	UID  types.UID `json:"uid"`
	Keys []string  `json:"keys"`
}

// readJournal reads the journal of a primary, without one nil. It asks the API server, because a copy may not know what was noted
// last. What is gone already has that of its last known state, also if another object has its name by now.
func (r *things[O, T]) readJournal(ctx context.Context) (*journal, error) {
	if r.config.Journal == nil {
		return nil, nil
	}
	given, ok := any(r.obj).(client.Object)
	if !ok {
		return nil, framework.Permanent(fmt.Errorf("a %T has no annotations for a journal", r.obj))
	}
	gvk, err := r.config.Journal.GroupVersionKindFor(given)
	if err != nil {
		return nil, framework.Permanent(fmt.Errorf("find the kind of the primary: %w: register its type in the client's scheme", err))
	}
	j := &journal{
		client: r.config.Journal, primary: &metav1.PartialObjectMetadata{},
		marks: r.marks, own: make([]bool, len(r.marks)), keys: map[string]int{}, inherited: sets.New[string](),
	}
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
	for at := range r.marks {
		if err := j.read(at, r.config.Mark != nil); err != nil {
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
func (j *journal) read(at int, marked bool) error {
	text := j.primary.Annotations[j.annotation(at)]
	if text == "" {
		return nil
	}
	var read pageText
	if err := json.Unmarshal([]byte(text), &read); err != nil {
		return framework.Permanent(fmt.Errorf("read the journal in the annotation %s of the primary: %w: mend it, "+
			"or delete it and what %s has made", j.annotation(at), err, j.marks[at]))
	}
	switch {
	case read.For != j.name():
		j.copied = read.For
	case j.primary.UID != "" && read.UID != j.primary.UID && !marked:
		j.inherited.Insert(read.Keys...)
	default:
		j.own[at] = true
		for _, key := range read.Keys {
			if !j.has(key) {
				j.keys[key] = at
			}
		}
	}
	return nil
}

func (j *journal) annotation(at int) string { return JournalPrefix + j.marks[at].Hash() }

// name is the name of the primary, with its namespace.
func (j *journal) name() string {
	if j.primary.Namespace == "" {
		return j.primary.Name
	}
	return j.primary.Namespace + "/" + j.primary.Name
}

// claimOn is the claim on a thing that exists.
func (j *journal) claimOn(key string) keyed.Claim {
	at, noted := j.keys[key]
	switch {
	case noted:
		return keyed.ClaimOf(j.marks, at)
	case j.inherited.Has(key):
		return keyed.Claim{Holder: keyed.Inherited}
	case j.copied != "":
		return keyed.FreeClaim("it exists already, and the journal of the primary is a copy of that of " + j.copied)
	}
	return keyed.FreeClaim("it exists already, and is not in the journal of the primary")
}

// all returns all keys in their order.
func (j *journal) all() []string {
	if j == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(j.keys))
}

func (j *journal) has(key string) bool {
	if j == nil {
		return false
	}
	_, ok := j.keys[key]
	return ok
}

// settle finds out what has to change besides the keys of what is put and deleted. Sign reports
// that a page is another one than would be written, as after a restore. Trim reports that keys are
// to be removed.
func (j *journal) settle(desired func(key string) bool) (sign, trim bool) {
	j.stale = slices.DeleteFunc(j.stale, desired)
	j.bequest = slices.DeleteFunc(sets.List(j.inherited), func(key string) bool { return !desired(key) })
	return len(j.changes()) > 0, len(j.stale) > 0
}

// add notes keys under the present name, and returns when that is written.
func (j *journal) add(ctx context.Context, keys []Key) error {
	if j == nil {
		return nil
	}
	for _, key := range keys {
		j.keys[key.Name] = 0
	}
	for _, key := range j.bequest {
		j.keys[key] = 0
	}
	return j.write(ctx)
}

// removeGone removes the keys of things that are gone.
func (j *journal) removeGone(ctx context.Context) error {
	if j == nil {
		return nil
	}
	for _, key := range j.stale {
		delete(j.keys, key)
	}
	return j.write(ctx)
}

// changes returns the annotations that differ from what stands in the primary.
func (j *journal) changes() map[string]any {
	pages := make([][]string, len(j.marks))
	for _, key := range j.all() {
		pages[j.keys[key]] = append(pages[j.keys[key]], key)
	}
	changes := map[string]any{}
	for at, keys := range pages {
		name := j.annotation(at)
		if len(keys) == 0 {
			if j.own[at] {
				changes[name] = nil
			}
			continue
		}
		text, _ := json.Marshal(pageText{j.marks[at].String(), j.name(), j.primary.UID, keys})
		if j.primary.Annotations[name] != string(text) {
			changes[name] = string(text)
		}
	}
	return changes
}

// write writes what has changed.
func (j *journal) write(ctx context.Context) error {
	annotations := j.changes()
	if len(annotations) == 0 {
		return nil
	}
	document, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": j.primary.UID, "resourceVersion": j.primary.ResourceVersion, "annotations": annotations,
	}})
	if err != nil {
		return err
	}
	manager := client.FieldOwner(j.marks[0].FieldManager())
	err = j.client.Patch(ctx, j.primary, client.RawPatch(types.MergePatchType, document), manager)
	if apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) {
		return framework.Permanent(fmt.Errorf("write the journal of the primary, of %d bytes: %w: an object takes %d bytes of annotations: "+
			"divide what it stands for among several primaries", len(document), err, validation.TotalAnnotationSizeLimitB))
	}
	if err != nil {
		return fmt.Errorf("write the journal of the primary: %w", err)
	}
	for at := range j.own {
		if text, changed := annotations[j.annotation(at)]; changed {
			j.own[at] = text != nil
		}
	}
	return nil
}
