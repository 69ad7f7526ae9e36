package guards

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// remembered is how long a namespace is remembered, and maxRemembered how many are.
	remembered    = 10 * time.Second
	maxRemembered = 1000
	// readTimeout limits one request. A worker waits for it.
	readTimeout = 10 * time.Second
)

// namespaces reads namespaces. It is safe for concurrent use.
type namespaces struct {
	reader client.Reader
	known  *cache.LRUExpireCache
}

// get returns a namespace as a JSON value. It is nil for an empty name, and if there is none of
// that name.
func (n *namespaces) get(ctx context.Context, name string) (object any, err error) {
	if name == "" {
		return nil, nil
	}
	if object, known := n.known.Get(name); known {
		return object, nil
	}
	if n.reader == nil {
		return nil, errors.New("there is no connection")
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	namespace := &corev1.Namespace{}
	err = n.reader.Get(ctx, client.ObjectKey{Name: name}, namespace)
	if err == nil {
		object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(namespace)
	}
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	n.known.Add(name, object, remembered)
	return object, nil
}
