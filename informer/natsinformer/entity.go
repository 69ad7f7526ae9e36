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

// Entity is an entry of a bucket: a pointer to a struct that embeds [Meta] by value. Entities are copied by encoding and
// decoding them; one that has to be faster implements informer.Copier, and copies its Meta with DeepCopy.
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

// Meta is what every entity carries. The fields that a [Bucket] maintains say so; the rest is the writer's. It also holds, unseen, what the
// entry has and the type does not: whoever writes an entity with the Meta of the one that was read keeps that.
type Meta struct {
	// Name is the key of the entry. A Bucket sets it to the key whenever it reads.
	Name string `json:"name,omitempty"`
	// UID tells an entity from others that had its name before. A Bucket sets it when it creates the entry, and when it
	// updates one that was written without.
	UID types.UID `json:"uid,omitempty"`
	// OwnerKey and OwnerKind name the entity, or other thing, that this one was made for. Both are empty for one that
	// stands for itself.
	OwnerKey  string `json:"ownerKey,omitempty"`
	OwnerKind string `json:"ownerKind,omitempty"`
	// Labels are for selecting entities.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations are for everything else that is said about an entity.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Generation counts the versions of what is wanted. Who changes that increases it; a Bucket starts it at 1.
	Generation int64 `json:"generation,omitempty"`
	// CreationTimestamp is when the entry was created. A Bucket sets it.
	CreationTimestamp metav1.Time `json:"creationTimestamp,omitzero"`
	// DeletionTimestamp is when the deletion of the entity was asked for (Bucket.RequestDeletion). Whoever reconciles the
	// entities cleans up then and removes the entry.
	DeletionTimestamp *metav1.Time `json:"deletionTimestamp,omitempty"`
	// Finalizers keep an entry whose deletion was asked for from being removed, until who put them there takes them off.
	Finalizers []string `json:"finalizers,omitempty"`
	// Conditions are what is known about the entity. Use meta.SetStatusCondition of apimachinery.
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	revision uint64
	// gone says that this is the last known state of an entry that is gone. The revision is then that of its delete marker,
	// or 0 if there is none to be cleaned up.
	gone bool
	// copier copies the entity around this metadata; it is nil before a Bucket has read or written it.
	copier *copier
	// original is the JSON that the entity was read from if it has fields that the type does not have. It is never changed.
	original []byte
	// stored is what a Source keeps beside an entity in its store; it is nil in copies.
	stored *stored
}

// copier copies entities as the Bucket does that they come from.
type copier struct{ copy func(outer any) (any, error) }

// stored is what a Source knows of an entry besides the entity.
type stored struct {
	// data is the value that the entity was decoded from, and nil if it was not or if the entity copies itself.
	data []byte
	// fault says why the value of the entry can't be decoded. The entity is the last one that could be then.
	fault error
}

// EntityMeta implements [Entity].
func (m *Meta) EntityMeta() *Meta { return m }

// Revision is the revision of the entry that was read or written: the sequence of its message in the bucket's stream. It
// is 0 for an entity that is not stored. Writes are refused when the entry has another one by then.
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

// DecodeError says why the value of the entry can't be decoded, in an event of a Source: the entity that the event carries
// is then the last state that could be decoded, or has a name and nothing else. It is nil for any other entity.
func (m *Meta) DecodeError() error {
	if m.stored == nil {
		return nil
	}
	return m.stored.fault
}

// CopyOuter implements informer.OuterCopier: it copies the entity that embeds m, with the codec of the Bucket that it came
// from unless it is a Kubernetes object or an informer.Copier. An entity that has never been in a Bucket is returned as it
// is.
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

// stamp fills in what a Bucket maintains and is not set.
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
