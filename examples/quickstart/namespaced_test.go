package quickstart_test

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/examples/quickstart"
	"github.com/operatorkit/operatorkit/examples/quickstart/v1alpha1"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/command/commandtest"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// kubeconfigOf makes what the manifests have in a namespace: a service account with its rights there, and none beyond. It returns a kubeconfig
// with its token.
func kubeconfigOf(t *testing.T, kube *operatortest.Instance, user client.Client, namespace string) string {
	t.Helper()
	objects, err := commandtest.Manifests(t.Context(), quickstart.Config, "--namespace", namespace, "--into", namespace)
	if err != nil {
		t.Fatal(err)
	}
	var account *corev1.ServiceAccount
	for _, o := range objects {
		if o.GetNamespace() != namespace {
			t.Errorf("the manifests have the %T %s beyond the namespace", o, o.GetName())
		}
		if err := user.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if o, ok := o.(*corev1.ServiceAccount); ok {
			account = o
		}
	}
	for _, o := range objects {
		role, ok := o.(*rbacv1.Role)
		if !ok {
			continue
		}
		last := role.Rules[len(role.Rules)-1]
		resource, subresource, _ := strings.Cut(last.Resources[0], "/")
		attributes := &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: last.Verbs[0], Group: last.APIGroups[0], Resource: resource, Subresource: subresource}
		if len(last.ResourceNames) > 0 {
			attributes.Name = last.ResourceNames[0]
		}
		operatortest.EventuallyAllowed(t, user, authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + namespace + ":" + account.Name, ResourceAttributes: attributes,
		})
	}
	token := &authenticationv1.TokenRequest{}
	if err := user.SubResource("token").Create(t.Context(), account, token); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(kube.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAUserWithRightsInOneNamespaceOnlyRunsEverything(t *testing.T) {
	kube := operatortest.Start(t)
	crds, err := operator.ReadCRDs(v1alpha1.CRDs)
	if err != nil {
		t.Fatal(err)
	}
	kube.InstallCRDs(t, crds...)
	namespace := kube.Namespace(t)
	user := operatortest.NewClient(t, kube.RESTConfig(), newScheme(t))
	kubeconfig := kubeconfigOf(t, kube, user, namespace)
	config := quickstart.Config
	config.KeepGlobalLoggers = true

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	var log bytes.Buffer
	go func() {
		ended <- command.Execute(ctx, config, []string{
			"run", "--kubeconfig", kubeconfig, "--namespace", namespace, "--leader-elect", "--leader-election-namespace", namespace,
			"--listen-address", "127.0.0.1:0", "--inspector-address", "127.0.0.1:0", "--log-format", "text",
		}, io.Discard, &log)
	}()
	home := site("home", "v1", "hello")
	home.Namespace = namespace
	if err := user.Create(t.Context(), home); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the site is there", func() error {
		return operatortest.All(says("home", "<p>hello"), ready("home"))(t.Context(), user, namespace)
	})

	if err := user.Delete(t.Context(), home); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "nothing is left", func() error {
		return operatortest.Gone(site("home", "", ""), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "home-page"}})(t.Context(), user, namespace)
	})
	cancel()
	if code := <-ended; code != command.ExitOK {
		t.Errorf("run ends with %d", code)
	}
	// The definition may not be looked at, which is told, and nothing else was refused.
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "forbidden") && !strings.Contains(line, "it may not be looked at") {
			t.Errorf("forbidden: %s", line)
		}
	}
	if !strings.Contains(log.String(), "it may not be looked at") {
		t.Errorf("the log does not say that the definition is taken as it is:\n%s", &log)
	}
}
