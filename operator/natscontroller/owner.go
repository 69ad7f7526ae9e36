package natscontroller

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/cache"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/internal/normalize"
	"github.com/operatorkit/operatorkit/resource/natsresource"
)

// The labels and annotations by which a Kubernetes object names the primary that it was made for. The annotations go
// before the labels: a key may be longer than a label, and have other characters.
const (
	OwnerKeyLabel       = "kumori/ownerkey"
	OwnerkindLabel      = "kumori/ownerkind"
	OwnerKeyAnnotation  = "kumori/ownerkey"
	OwnerkindAnnotation = "kumori/ownerkind"
)

// hashPrefix marks labels that can't hold the key itself.
const hashPrefix = "sha256."

// SetOwner marks a Kubernetes object as made by a controller for the primary of that kind and key: by annotations, and by labels
// for selecting objects. By is the identity of the controller: ControllerRuntime.Identity, or in a resource that of
// identity.From(ctx). What else the object has among its labels and annotations stays: a number in an unstructured one becomes text.
func SetOwner(obj metav1.Object, by identity.Identity, kind, key string) {
	normalize.Mark(obj, OwnerLabels(kind, key), map[string]string{
		OwnerKeyAnnotation: key, OwnerkindAnnotation: kind, natsresource.MadeByAnnotation: natsresource.MadeBy(by),
	})
}

// SetEntityOwner is SetOwner for an entity that is not made by package natsresource, which does it itself.
func SetEntityOwner(entity natsinformer.Entity, by identity.Identity, kind, key string) {
	m := entity.EntityMeta()
	m.OwnerKind, m.OwnerKey = kind, key
	m.Annotations = labels.Merge(m.Annotations, map[string]string{natsresource.MadeByAnnotation: natsresource.MadeBy(by)})
}

// OwnerLabels returns the labels that SetOwner sets, for selectors. A value that is no valid label is replaced by a hash of
// it.
func OwnerLabels(kind, key string) map[string]string {
	return map[string]string{OwnerKeyLabel: labelOf(key), OwnerkindLabel: labelOf(kind)}
}

func labelOf(value string) string {
	if len(validation.IsValidLabelValue(value)) == 0 && !strings.HasPrefix(value, hashPrefix) {
		return value
	}
	sum := sha256.Sum256([]byte(value))
	return hashPrefix + hex.EncodeToString(sum[:20])
}

// OwnerOf returns the kind and the key of the primary that an object was made for: what an entity has as OwnerKind and
// OwnerKey, and a Kubernetes object as annotations or, where it lacks them, as labels. Both are empty if it names none.
func OwnerOf(obj any) (kind, key string) {
	switch o := obj.(type) {
	case natsinformer.Entity:
		kind, key = o.EntityMeta().OwnerKind, o.EntityMeta().OwnerKey
	case informer.Meta:
		kind = marker(o, OwnerkindAnnotation, OwnerkindLabel)
		key = marker(o, OwnerKeyAnnotation, OwnerKeyLabel)
	}
	if kind == "" || key == "" {
		return "", ""
	}
	return kind, key
}

// marker reads an annotation or else a label. A label that holds a hash says nothing without its annotation.
func marker(o informer.Meta, annotation, label string) string {
	if value := o.GetAnnotations()[annotation]; value != "" {
		return value
	}
	value := o.GetLabels()[label]
	if strings.HasPrefix(value, hashPrefix) {
		return ""
	}
	return value
}

// DecomposeKubeSecondaryResource returns a Kubernetes object, which may come as a cache.DeletedFinalStateUnknown, and the key
// of the primary of this controller that it was made for. The key is empty if it was made for none of this kind. Anything
// but a Kubernetes object is an error.
func (c *ControllerRuntime[T]) DecomposeKubeSecondaryResource(obj any) (secondaryResource metav1.Object, primaryKey string, err error) {
	if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = unknown.Obj
	}
	secondaryResource, ok := obj.(metav1.Object)
	if !ok {
		return nil, "", fmt.Errorf("decompose secondary: a %T is no Kubernetes object", obj)
	}
	return secondaryResource, c.ownerKey(obj), nil
}

// ownerKey returns the key of the primary of this controller that an object was made for, or "". What says that another
// controller made it was not.
func (c *ControllerRuntime[T]) ownerKey(obj any) string {
	kind, key := OwnerOf(obj)
	if by := madeBy(obj); kind != c.config.Kind || by != "" && !natsresource.IsMadeBy(by, c.Identity()) {
		return ""
	}
	return key
}

// madeBy returns what an object says of who made it, or "".
func madeBy(obj any) string {
	if m, ok := obj.(informer.Meta); ok {
		return m.GetAnnotations()[natsresource.MadeByAnnotation]
	}
	return ""
}
