package operatortest_test

import (
	"runtime"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// TestConnectionsOfForgottenClientsAreClosed is about a transport that nobody refers to any more: client-go forgets it
// then, and makes another one for the next client, while the connections of the first stay open.
func TestConnectionsOfForgottenClientsAreClosed(t *testing.T) {
	kube := operatortest.Start(t)
	use := func() {
		client, err := kubernetes.NewForConfig(kube.RESTConfig())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{Limit: 1}); err != nil {
			t.Fatal(err)
		}
	}
	before := runtime.NumGoroutine()
	use()
	for range 3 {
		runtime.GC()
	}
	use()
	operatortest.CloseIdle(kube)
	operatortest.Eventually(t, "the goroutines of the connections have ended", func() bool {
		return runtime.NumGoroutine() <= before
	})
}
