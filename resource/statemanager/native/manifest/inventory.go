package manifest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// What an inventory is called, and what it has.
const (
	// InventoryPrefix is what the name of the Secret with the inventory of a service begins with; the name of the service
	// follows.
	InventoryPrefix = "operatorkit-inventory-"
	// InventoryLabel is on every inventory, with the value "manifest".
	InventoryLabel = "services.operatorkit.io/inventory"

	inventoryValue   = "manifest"
	recordAnnotation = "services.operatorkit.io/record"
	objectsKey       = "objects.json"
	manifestsKey     = "manifests.json.gz"
	// largest is how large the manifests in an inventory may be when they are compressed, and largestNamed with the names of the objects: the
	// server takes a Secret of 1 MiB.
	largest      = 900 << 10
	largestNamed = corev1.MaxSecretSize - 16<<10
	// largestUnpacked bounds what is read of them.
	largestUnpacked = 256 << 20
)

// record is what an inventory says of its service, in an annotation.
type record struct {
	OwnerNamespace string               `json:"ownerNamespace"`
	OwnerName      string               `json:"ownerName"`
	OwnerUID       string               `json:"ownerUID,omitempty"`
	Type           v1alpha1.ServiceType `json:"type"`
	Template       string               `json:"template"`
	Version        string               `json:"version,omitempty"`
	// Fingerprint is the seal of the fingerprint.
	Fingerprint string `json:"fingerprint"`
	// Complete is set when all was put there.
	Complete bool `json:"complete"`
	// Applied is when that was.
	Applied metav1.Time `json:"applied,omitzero"`
	// Done are the Jobs that had finished and were gone by then.
	Done []string `json:"done,omitempty"`
	// Kinds are the kinds of the objects, as "Deployment.v1.apps".
	Kinds []string `json:"kinds,omitempty"`
}

// inventory is what a cluster has of a service.
type inventory struct {
	record
	key client.ObjectKey
	// secret is the Secret that it is in. Nothing of it is changed.
	secret *corev1.Secret
	// objects are all objects that there are or may be.
	objects []objectReference
}

// recordOf is the record of a service that is complete. The seal of what is there, or was begun, stays.
func recordOf(service *carrier.Service, have *inventory) record {
	r := record{
		OwnerNamespace: service.Owner.Namespace, OwnerName: service.Owner.Name, OwnerUID: string(service.Owner.UID),
		Type: typeOf(service.Template), Template: service.Template.Name, Version: service.Entry.Version,
	}
	if have != nil && service.Put(have.Fingerprint) {
		r.Fingerprint = have.Fingerprint
	} else {
		r.Fingerprint = carrier.Seal(service.Fingerprint)
	}
	return r
}

// isOf tells whether the inventory is an owner's as it is.
func (i *inventory) isOf(owner carrier.Owner) bool {
	return i.secret.Labels[carrier.OwnerLabel] == owner.ID() && i.OwnerUID == string(owner.UID)
}

// renamed tells whether the inventory is that of a keeper whose place the service's keeper takes.
func (i *inventory) renamed(service *carrier.Service) bool {
	return i != nil && slices.Contains(carrier.Owner{Namespace: i.OwnerNamespace, Name: i.OwnerName}.IDs(service.Former)[1:], i.secret.Labels[carrier.OwnerLabel])
}

// complete tells whether all of the service was put there.
func (i *inventory) complete() bool { return i != nil && i.Complete }

// size is about how many bytes the inventory takes: what it has as it is, and the names of its objects once more.
func (i *inventory) size() int {
	bytes := 1024
	for _, entry := range i.secret.Data {
		bytes += len(entry)
	}
	return bytes + len(i.secret.Data[objectsKey])
}

// has tells whether the inventory names an object.
func (i *inventory) has(object objectReference) bool {
	return slices.ContainsFunc(i.objects, func(r objectReference) bool { return r.identity() == object.identity() })
}

// sensitive are the objects of which the cluster may have values that must not be shown: those that were put there last, and those that were
// only begun. Where that can't be read, it is all of them.
func (i *inventory) sensitive() map[carrier.Identity]bool {
	if i == nil {
		return nil
	}
	var last []manifest
	var err error
	if len(i.secret.Data[manifestsKey]) > 0 {
		last, err = i.manifests()
	}
	sensitive := map[carrier.Identity]bool{}
	for _, object := range i.objects {
		sensitive[object.identity()] = object.Sensitive || err != nil
	}
	for _, m := range last {
		if m.Sensitive {
			sensitive[carrier.IdentityOf(m.Object)] = true
		}
	}
	return sensitive
}

// found is what is told of the inventory.
func (i *inventory) found(service *carrier.Service) *carrier.Found {
	if i == nil {
		return nil
	}
	return foundOf(i.key, &i.record, service.Owner.Keeper).Opened(service)
}

func foundOf(key client.ObjectKey, r *record, keeper carrier.Keeper) *carrier.Found {
	found := &carrier.Found{
		Key: key, Type: r.Type, Kinds: carrier.ParseKinds(r.Kinds),
		Owner: carrier.Owner{Keeper: keeper, Namespace: r.OwnerNamespace, Name: r.OwnerName, UID: uid(r.OwnerUID)},
	}
	if r.Complete {
		found.Template, found.Version, found.Seal = r.Template, r.Version, r.Fingerprint
	}
	return found
}

// secretOf makes the Secret of an inventory. The service's manifests are those that were put there last.
func secretOf(service *carrier.Service, r record, objects []objectReference, manifests []byte) (*corev1.Secret, error) {
	kinds := make([]schema.GroupVersionKind, len(objects))
	for i, object := range objects {
		kinds[i] = object.gvk()
	}
	r.Kinds = carrier.FormatKinds(kinds)
	encoded, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	names, err := json.Marshal(objects)
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: service.Key.Namespace, Name: InventoryPrefix + service.Key.Name,
			// Objects are told from inventories by InventoryLabel.
			Labels:      map[string]string{InventoryLabel: inventoryValue},
			Annotations: map[string]string{recordAnnotation: string(encoded)},
		},
		Type: "services.operatorkit.io/inventory",
		Data: map[string][]byte{objectsKey: names, manifestsKey: manifests},
	}
	carrier.Dress(secret, service)
	return secret, nil
}

// readRecord reads the record of an inventory.
func readRecord(inventory client.Object) (record, error) {
	var r record
	if err := json.Unmarshal([]byte(inventory.GetAnnotations()[recordAnnotation]), &r); err != nil {
		return r, fmt.Errorf("the annotation %s of Secret %s can't be read (%w): restore it, or delete the Secret, and the service is taken "+
			"note of anew", recordAnnotation, client.ObjectKeyFromObject(inventory), err)
	}
	return r, nil
}

// check tells whether an object is an inventory that is the service's to change.
func check(service *carrier.Service, object client.Object) error {
	switch {
	case object.GetLabels()[InventoryLabel] != inventoryValue:
		return fmt.Errorf("the Secret %s is no inventory, but has its name: rename it, or the service", client.ObjectKeyFromObject(object))
	case !service.Has(object.GetLabels()):
		return &RefusedError{Object: "service " + service.Key.String(), Owner: carrier.Whose(object)}
	}
	return nil
}

// inventoryOf reads an inventory.
func inventoryOf(key client.ObjectKey, secret *corev1.Secret) (*inventory, error) {
	r, err := readRecord(secret)
	if err != nil {
		return nil, err
	}
	i := &inventory{record: r, key: key, secret: secret}
	if err := json.Unmarshal(secret.Data[objectsKey], &i.objects); err != nil {
		return nil, fmt.Errorf("the entry %s of Secret %s can't be read: %w", objectsKey, client.ObjectKeyFromObject(secret), err)
	}
	return i, nil
}

// stored is a manifest in an inventory.
type stored struct {
	File      string         `json:"file"`
	Sensitive bool           `json:"sensitive,omitempty"`
	Object    map[string]any `json:"object"`
}

// manifests are what was put there last.
func (i *inventory) manifests() ([]manifest, error) {
	fail := func(err error) ([]manifest, error) {
		return nil, fmt.Errorf("the entry %s of Secret %s can't be read: %w", manifestsKey, client.ObjectKeyFromObject(i.secret), err)
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(i.secret.Data[manifestsKey]))
	if err != nil {
		return fail(err)
	}
	content, err := io.ReadAll(io.LimitReader(unpacked, largestUnpacked))
	if err != nil {
		return fail(err)
	}
	var all []json.RawMessage
	if err := json.Unmarshal(content, &all); err != nil {
		return fail(err)
	}
	manifests := make([]manifest, len(all))
	for n, each := range all {
		value, err := decode(each)
		if err != nil {
			return fail(err)
		}
		object, ok := field(value, "object").(map[string]any)
		if !ok {
			return fail(errors.New("an object is missing"))
		}
		sensitive, _ := field(value, "sensitive").(bool)
		manifests[n] = manifest{File: textOf(value, "file"), Sensitive: sensitive, Object: &unstructured.Unstructured{Object: object}}
	}
	return manifests, nil
}

// pack makes what an inventory keeps of manifests. The same manifests make the same bytes.
func pack(manifests []manifest) ([]byte, error) {
	all := make([]stored, len(manifests))
	for i, m := range manifests {
		all[i] = stored{File: m.File, Sensitive: m.Sensitive, Object: m.Object.Object}
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	if err := json.NewEncoder(zip).Encode(all); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	if packed.Len() > largest {
		return nil, tooLarge(packed.Len(), largest)
	}
	return packed.Bytes(), nil
}

func tooLarge(bytes, most int) error {
	return fmt.Errorf("its inventory would have %d bytes, with the objects compressed, and may have %d: split the service", bytes, most)
}

// checkSize returns an error for an installation whose inventory does not fit into a Secret.
func (i *installation) checkSize() error {
	names, err := json.Marshal(i.union())
	if err != nil {
		return err
	}
	manifests := len(i.packed)
	if i.have != nil {
		manifests = max(manifests, len(i.have.secret.Data[manifestsKey]))
	}
	if size := manifests + len(names); size > largestNamed {
		return tooLarge(size, largestNamed)
	}
	return nil
}

// since is how long ago all of the service was put there.
func (i *inventory) since(now time.Time) time.Duration { return now.Sub(i.Applied.Time) }
