// Package record keeps small values that the replicas of an operator share, in one ConfigMap.
package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Record is one value of a ConfigMap, as JSON. It is safe for concurrent use.
type Record[T any] struct {
	// Client reads without a cache.
	Client client.Client
	// Namespace and Name are those of the ConfigMap, and Key is the key of the value in its data.
	Namespace, Name, Key string
}

// ErrUnchanged is returned by the function of Change if there is nothing to write.
var ErrUnchanged = errors.New("the record stays as it is")

// Read returns the value. It is the zero value if there is none.
func (r Record[T]) Read(ctx context.Context) (T, error) {
	value, _, err := r.read(ctx)
	return value, err
}

// Change reads the value, changes it, and writes it unless another process has written it in
// between: then it starts over. It creates the ConfigMap if there is none. It returns the value
// that is stored now. An error of change ends it without a write, and is returned;
// [ErrUnchanged] is returned as nil.
func (r Record[T]) Change(ctx context.Context, change func(*T) error) (value T, err error) {
	again := func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }
	err = retry.OnError(retry.DefaultBackoff, again, func() error {
		var stored *corev1.ConfigMap
		if value, stored, err = r.read(ctx); err != nil {
			return err
		}
		if err := change(&value); err != nil {
			return err
		}
		return r.write(ctx, stored, value)
	})
	if errors.Is(err, ErrUnchanged) {
		err = nil
	}
	return value, err
}

func (r Record[T]) read(ctx context.Context) (value T, stored *corev1.ConfigMap, err error) {
	stored = &corev1.ConfigMap{}
	err = r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Name}, stored)
	if apierrors.IsNotFound(err) {
		stored.ObjectMeta = metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name}
		return value, stored, nil
	}
	if err != nil {
		return value, nil, fmt.Errorf("read ConfigMap %s/%s: %w", r.Namespace, r.Name, err)
	}
	if text := stored.Data[r.Key]; text != "" {
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			return value, nil, fmt.Errorf("read ConfigMap %s/%s: %q can't be read, mend or delete it: %w", r.Namespace, r.Name, r.Key, err)
		}
	}
	return value, stored, nil
}

func (r Record[T]) write(ctx context.Context, stored *corev1.ConfigMap, value T) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("write %q of ConfigMap %s/%s: %w", r.Key, r.Namespace, r.Name, err)
	}
	if stored.Data == nil {
		stored.Data = map[string]string{}
	}
	stored.Data[r.Key] = string(text)
	if stored.ResourceVersion == "" {
		err = r.Client.Create(ctx, stored)
	} else {
		err = r.Client.Update(ctx, stored)
	}
	if err != nil {
		return fmt.Errorf("write ConfigMap %s/%s: %w", r.Namespace, r.Name, err)
	}
	return nil
}
