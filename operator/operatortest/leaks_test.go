package operatortest_test

import (
	"runtime"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// tokenIn returns a token of a service account without rights. The API server closes the connections of who shows none that is good.
func tokenIn(t *testing.T, kube *operatortest.Instance) string {
	t.Helper()
	accounts := kubernetes.NewForConfigOrDie(kube.RESTConfig()).CoreV1().ServiceAccounts(kube.Namespace(t))
	account, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	token, err := accounts.CreateToken(t.Context(), account.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return token.Status.Token
}

// TestConnectionsOfForgottenClientsAreClosed is about a transport that nobody refers to any more: client-go forgets it
// then, and makes another one for the next client, while the connections of the first stay open.
func TestConnectionsOfForgottenClientsAreClosed(t *testing.T) {
	kube := operatortest.Start(t)
	withToken := rest.AnonymousClientConfig(kube.RESTConfig())
	withToken.BearerToken = tokenIn(t, kube)
	for name, config := range map[string]*rest.Config{"the administrator": kube.RESTConfig(), "somebody with a token": withToken} {
		t.Run(name, func(t *testing.T) {
			use := func() {
				client, err := kubernetes.NewForConfig(config)
				if err != nil {
					t.Fatal(err)
				}
				_, err = client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{Limit: 1})
				if err != nil && !apierrors.IsForbidden(err) {
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
		})
	}
}
