package natsinformer

import (
	"maps"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/informer"
)

// Entity is an entry of a bucket: a pointer to a struct that embeds [Meta] by value. Entities are
// copied by encoding and decoding them. For faster copies implement informer.Copier, and copy the
// Meta with DeepCopy.
//
//	type Gateway struct {
//		natsinformer.Meta `json:"metadata"`
//		Spec              GatewaySpec `json:"spec"`
//	}
type Entity interface {
	informer.Meta
	// EntityMeta returns the entity's own metadata, to be read and changed.
	EntityMeta() *Meta
}

// Meta is the metadata of every entity. Fields that a [Bucket] maintains say so; the writer owns
// the others. Meta also holds, unexported, the fields of the entry that the type lacks. They are
// kept if an entity is written with the Meta that was read.
type Meta struct {
	// Name is the key of the entry. A Bucket sets it to the key whenever it reads.
	Name string `json:"name,omitempty"`
	// UID distinguishes an entity from earlier ones of its name. A Bucket sets it when it creates
	// the entry, and when it updates an entry without one.
	UID types.UID `json:"uid,omitempty"`
	// OwnerKey and OwnerKind name the owner that this entity was created for, an entity or another
	// thing. Both are empty without an owner.
	OwnerKey  string `json:"ownerKey,omitempty"`
	OwnerKind string `json:"ownerKind,omitempty"`
	// Labels are for selecting entities.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations are for all other information about an entity.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Generation counts the versions of the desired state. A client that changes that state must
	// increase it; a Bucket sets it to 1 at first.
	Generation int64 `json:"generation,omitempty"`
	// CreationTimestamp is when the entry was created. A Bucket sets it.
	CreationTimestamp metav1.Time `json:"creationTimestamp,omitzero"`
	// DeletionTimestamp is the time at which the deletion of the entity was requested
	// (Bucket.RequestDeletion). The reconciler of the entities then cleans up and removes the
	// entry.
	DeletionTimestamp *metav1.Time `json:"deletionTimestamp,omitempty"`
	// Finalizers delay the removal of an entry after its deletion was requested, until their owners
	// remove them.
	Finalizers []string `json:"finalizers,omitempty"`
	// Conditions describe the state of the entity. Use meta.SetStatusCondition of apimachinery.
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	revision uint64
	// gone is true for the last known state of an entry that is gone. The revision is then that of
	// its delete marker, or 0 without a marker to clean up.
	gone bool
	// copier copies the entity around this metadata. It is nil until a Bucket has read or written
	// it.
	copier *copier
	// original is the JSON that the entity was read from if it has fields that the type lacks. It
	// is immutable.
	original []byte
	// stored is kept beside an entity in the store of a Source. It is nil in copies.
	stored *stored
}

// copier copies entities like the Bucket they come from.
type copier struct{ copy func(outer any) (any, error) }

// stored is what a Source keeps about an entry besides the entity.
type stored struct {
	// data is the value that the entity was decoded from. It is nil if the entity was not decoded
	// or copies itself.
	data []byte
	// fault is the reason why the value of the entry can't be decoded. The entity is then the last
	// one that could be decoded.
	fault error
}

// EntityMeta implements [Entity].
func (m *Meta) EntityMeta() *Meta { return m }

// Revision returns the revision of the entry that was read or written: the sequence of its message
// in the bucket's stream. It is 0 for an entity that is not stored. A write is refused if the entry
// has another revision by then.
func (m *Meta) Revision() uint64 { return m.revision }

// GetName returns the key of the entry.
func (m *Meta) GetName() string { return m.Name }

// GetNamespace returns "": buckets have no namespaces.
func (m *Meta) GetNamespace() string { return "" }

// GetUID returns UID.
func (m *Meta) GetUID() types.UID { return m.UID }

// GetResourceVersion returns the revision as text, and "" for an entity that is not stored.
func (m *Meta) GetResourceVersion() string {
	if m.revision == 0 {
		return ""
	}
	return strconv.FormatUint(m.revision, 10)
}

// GetGeneration returns Generation.
func (m *Meta) GetGeneration() int64 { return m.Generation }

// GetLabels returns Labels.
func (m *Meta) GetLabels() map[string]string { return m.Labels }

// GetAnnotations returns Annotations.
func (m *Meta) GetAnnotations() map[string]string { return m.Annotations }

// GetCreationTimestamp returns CreationTimestamp.
func (m *Meta) GetCreationTimestamp() metav1.Time { return m.CreationTimestamp }

// GetDeletionTimestamp returns DeletionTimestamp.
func (m *Meta) GetDeletionTimestamp() *metav1.Time { return m.DeletionTimestamp }

// GetFinalizers returns Finalizers.
func (m *Meta) GetFinalizers() []string { return m.Finalizers }

// DecodeError returns the reason why the value of the entry can't be decoded, in an event of a
// Source. The entity of the event is then the last state that could be decoded, or has nothing but
// a name. DecodeError returns nil for any other entity.
func (m *Meta) DecodeError() error {
	if m.stored == nil {
		return nil
	}
	return m.stored.fault
}

// CopyOuter implements informer.OuterCopier: it copies the entity that embeds m, with the codec of
// its Bucket unless it is a Kubernetes object or an informer.Copier. An entity that has never been
// in a Bucket is returned itself.
func (m *Meta) CopyOuter(outer any) any {
	if m.copier == nil {
		return outer
	}
	copied, err := m.copier.copy(outer)
	if err != nil {
		return outer
	}
	return copied
}

// DeepCopy returns a copy that shares nothing with m.
func (m *Meta) DeepCopy() Meta {
	c := *m
	c.Labels = maps.Clone(m.Labels)
	c.Annotations = maps.Clone(m.Annotations)
	c.Finalizers = slices.Clone(m.Finalizers)
	c.Conditions = slices.Clone(m.Conditions)
	c.DeletionTimestamp = m.DeletionTimestamp.DeepCopy()
	return c
}

// stamp sets the fields that a Bucket maintains and that are not set.
func (m *Meta) stamp(uid types.UID, now time.Time) {
	if m.UID == "" {
		m.UID = uid
	}
	if m.Generation == 0 {
		m.Generation = 1
	}
	if m.CreationTimestamp.IsZero() {
		m.CreationTimestamp = metav1.NewTime(now.UTC().Truncate(time.Second))
	}
}
