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
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
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
	return r.Change(ctx, func(*T) error { return ErrUnchanged })
}

// Change reads the value, changes it, and writes it unless it stays the same. If another process has
// written it in between, Change starts over. It creates the ConfigMap if there is none. It returns the
// value that is stored now. An error of change ends it without a write, and is returned;
// [ErrUnchanged] is returned as nil.
func (r Record[T]) Change(ctx context.Context, change func(*T) error) (value T, err error) {
	again := func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }
	err = retry.OnError(retry.DefaultBackoff, again, func() error {
		stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name}}
		_, err := controllerutil.CreateOrUpdate(ctx, r.Client, stored, func() error {
			value = *new(T)
			if text := stored.Data[r.Key]; text != "" {
				if err := json.Unmarshal([]byte(text), &value); err != nil {
					return fmt.Errorf("%q can't be read, mend or delete it: %w", r.Key, err)
				}
			}
			if err := change(&value); err != nil {
				return err
			}
			text, err := json.Marshal(value)
			if stored.Data == nil {
				stored.Data = map[string]string{}
			}
			stored.Data[r.Key] = string(text)
			return err
		})
		return err
	})
	if err == nil || errors.Is(err, ErrUnchanged) {
		return value, nil
	}
	return value, fmt.Errorf("state in ConfigMap %s/%s: %w", r.Namespace, r.Name, err)
}
