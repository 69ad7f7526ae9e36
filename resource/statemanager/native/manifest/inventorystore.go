package manifest

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// read returns the inventory of a service, or nil. One that belongs to somebody else is a RefusedError. What was read before is not read again, only whether it is still that.
func (c *Carrier) read(ctx context.Context, cluster carrier.Cluster, service *carrier.Service) (*inventory, error) {
	key := client.ObjectKey{Namespace: service.Key.Namespace, Name: InventoryPrefix + service.Key.Name}
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := cluster.Client().Get(ctx, key, metadata)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // That there is none is an answer.
	}
	if err != nil {
		return nil, fmt.Errorf("read the inventory of service %s: %w", service.Key, err)
	}
	if err := check(service, metadata); err != nil {
		return nil, err
	}
	if known, ok := c.inventories.Get(versionOf(metadata)); ok {
		return known, nil
	}
	secret := &corev1.Secret{}
	if err := cluster.Client().Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("read the inventory of service %s: %w", service.Key, client.IgnoreNotFound(err))
	}
	if err := check(service, secret); err != nil {
		return nil, err
	}
	i, err := inventoryOf(service.Key, secret)
	if err != nil {
		return nil, err
	}
	c.inventories.Add(versionOf(secret), i, i.size())
	return i, nil
}

type version struct {
	uid     types.UID
	version string
}

func versionOf(object client.Object) version {
	return version{uid: object.GetUID(), version: object.GetResourceVersion()}
}

// write writes an inventory. Before is the one that was there, which must not have changed since; nil is none.
func (c *Carrier) write(
	ctx context.Context, cluster carrier.Cluster, service *carrier.Service, before *corev1.Secret, r record, objects []objectReference, manifests []byte,
) (*corev1.Secret, error) {
	secret, err := secretOf(service, r, objects, manifests)
	if err != nil {
		return nil, err
	}
	if before == nil {
		err = cluster.Client().Create(ctx, secret, client.FieldOwner(service.Owner.FieldManager()))
	} else {
		secret.UID, secret.ResourceVersion = before.UID, before.ResourceVersion
		err = cluster.Client().Update(ctx, secret, client.FieldOwner(service.Owner.FieldManager()))
	}
	if err != nil {
		if apierrors.IsAlreadyExists(err) {
			// Somebody was quicker: the next look tells who.
			err = apierrors.NewConflict(corev1.Resource("secrets"), secret.Name, err)
		}
		return nil, fmt.Errorf("write the inventory of service %s: %w", service.Key, wordless(err))
	}
	return secret, nil
}

// list returns what a cluster has of the services of an owner.
func list(ctx context.Context, cluster carrier.Cluster, owner carrier.Owner, former []carrier.Keeper) ([]carrier.Found, error) {
	found := &metav1.PartialObjectMetadataList{}
	found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	selector, err := labels.ValidatedSelectorFromSet(labels.Set{InventoryLabel: inventoryValue})
	if err != nil {
		return nil, err
	}
	ours, err := labels.NewRequirement(carrier.OwnerLabel, selection.In, owner.IDs(former))
	if err != nil {
		return nil, err
	}
	err = cluster.Client().List(ctx, found, client.MatchingLabelsSelector{Selector: selector.Add(*ours)})
	if err != nil {
		return nil, fmt.Errorf("list the inventories of ServiceSet %s/%s: %w", owner.Namespace, owner.Name, err)
	}
	var services []carrier.Found
	for i := range found.Items {
		secret := &found.Items[i]
		key := client.ObjectKey{Namespace: secret.Namespace, Name: secret.Labels[carrier.ServiceLabel]}
		r, err := readRecord(secret)
		if err != nil {
			services = append(services, carrier.Found{Key: key, Type: v1alpha1.ServiceTypeResource, Unreadable: err})
			continue
		}
		services = append(services, *foundOf(key, &r, owner.Keeper))
	}
	return services, nil
}

func uid(text string) types.UID { return types.UID(text) }
