package informer

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// GetLive implements [LiveReader]: it asks the API server. The object has gone through the transform, like a stored one.
func (k *Kubernetes) GetLive(ctx context.Context, key Key) (obj any, exists bool, err error) {
	live, err := k.getLive(ctx, key)
	switch {
	case apierrors.IsNotFound(err):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	return live, true, nil
}

func (k *Kubernetes) getLive(ctx context.Context, key Key) (client.Object, error) {
	obj, err := k.newObject()
	if err != nil {
		return nil, err
	}
	if err := k.config.Client.Get(ctx, key, obj); err != nil {
		return nil, fmt.Errorf("get %s %s: %w", k.gvk.Kind, key, err)
	}
	return k.prepare.answer(obj), nil
}
