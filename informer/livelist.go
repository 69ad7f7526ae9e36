package informer

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// livePage is how many objects ListLive asks for at once.
const livePage = 500

// errListedOld is what a server lags with, or a proxy that answers for it.
var errListedOld = errors.New("the listing is older than an answer before it")

// ListLive implements [LiveLister]: it lists the metadata of what the source selects, and believes a listing only that is as new as what a
// list of one, which is not kept for anybody, was answered with before.
func (k *Kubernetes) ListLive(ctx context.Context, yield func(key Key, obj any)) error {
	for _, namespace := range k.namespaces() {
		now, err := k.listLive(ctx, &client.ListOptions{Namespace: namespace, Limit: 1})
		if err != nil {
			return err
		}
		options := &client.ListOptions{
			Namespace: namespace, Limit: livePage,
			LabelSelector: k.config.LabelSelector, FieldSelector: k.config.FieldSelector,
		}
		for page := now; options.Continue != "" || page == now; options.Continue = page.Continue {
			if page, err = k.listLive(ctx, options); err != nil {
				return err
			}
			if order, err := resourceversion.CompareResourceVersion(page.ResourceVersion, now.ResourceVersion); err != nil || order < 0 {
				return errors.Join(fmt.Errorf("list %s: %w", k.Name(), errListedOld), err)
			}
			for i := range page.Items {
				yield(client.ObjectKeyFromObject(&page.Items[i]), &page.Items[i])
			}
		}
	}
	return nil
}

func (k *Kubernetes) listLive(ctx context.Context, options *client.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(k.gvk.GroupVersion().WithKind(k.gvk.Kind + "List"))
	if err := k.client.List(ctx, list, options); err != nil {
		return nil, fmt.Errorf("list %s: %w", k.Name(), err)
	}
	return list, nil
}
