package guards

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
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
	mu     sync.Mutex
	known  map[string]knownNamespace
}

type knownNamespace struct {
	object map[string]any
	until  time.Time
}

// get returns a namespace as a JSON value. It is nil for an empty name, and if there is none of
// that name.
func (n *namespaces) get(ctx context.Context, name string) (any, error) {
	if name == "" {
		return nil, nil
	}
	if object, ok := n.recall(name); ok {
		return nilIfEmpty(object), nil
	}
	if n.reader == nil {
		return nil, errors.New("there is no connection")
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	namespace := &corev1.Namespace{}
	err := n.reader.Get(ctx, client.ObjectKey{Name: name}, namespace)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	var object map[string]any
	if !apierrors.IsNotFound(err) {
		if object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(namespace); err != nil {
			return nil, err
		}
	}
	n.remember(name, object)
	return nilIfEmpty(object), nil
}

func nilIfEmpty(object map[string]any) any {
	if object == nil {
		return nil
	}
	return object
}

func (n *namespaces) recall(name string) (object map[string]any, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	known, ok := n.known[name]
	return known.object, ok && time.Now().Before(known.until)
}

func (n *namespaces) remember(name string, object map[string]any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known == nil || len(n.known) >= maxRemembered {
		n.known = map[string]knownNamespace{}
	}
	n.known[name] = knownNamespace{object, time.Now().Add(remembered)}
}
