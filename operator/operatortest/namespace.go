package operatortest

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	// namePrefixLength leaves room for the random end of a generated name.
	namePrefixLength = 40
	// cleanupTimeout ends a clean-up whose server does not answer.
	cleanupTimeout = hangLimit
	// abandon marks the namespace of a test that has ended. The control plane that Start starts takes the finalizers off what is left in it;
	// another cluster doesn't know it.
	abandon = `{"metadata":{"annotations":{"operatortest.operatorkit.io/abandoned":"true"}}}`
)

// Namespace creates a namespace for the test and returns its name, which
// begins with the test's. When the test ends, its deletion is begun, unless the
// control plane ends then too. Operators have ended by then: a control plane of
// this package takes the finalizers off what they have left.
func (i *Instance) Namespace(t testing.TB) string {
	t.Helper()
	var name string
	err := i.withClient(func(client kubernetes.Interface) error {
		namespace, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{GenerateName: namePrefix(t.Name())},
		}, metav1.CreateOptions{})
		if err == nil {
			name = namespace.Name
		}
		return err
	})
	if err != nil {
		t.Fatalf("operatortest: create a namespace: %v", err)
	}
	if i.plane != nil {
		return name
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
		defer cancel()
		err := i.withClient(func(client kubernetes.Interface) error {
			_, err := client.CoreV1().Namespaces().Patch(ctx, name, types.MergePatchType, []byte(abandon), metav1.PatchOptions{})
			if err != nil {
				return err
			}
			return client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
		})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("operatortest: delete namespace %s: %v", name, err)
		}
	})
	return name
}

// withClient calls f with a client whose connections are closed afterwards.
func (i *Instance) withClient(f func(kubernetes.Interface) error) error {
	config := i.RESTConfig()
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	defer i.closeIdle()
	client, err := kubernetes.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return err
	}
	return f(client)
}

// namePrefix makes the beginning of an object's name from the name of a test.
func namePrefix(test string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		default:
			return '-'
		}
	}, test)
	if len(name) > namePrefixLength {
		name = name[:namePrefixLength]
	}
	return strings.Trim(name, "-") + "-"
}
