package operator_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/inspector"
	"github.com/operatorkit/operatorkit/operator/logging"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// inspectedOperator is an operator of one framework that has an inspector at the address.
func inspectedOperator(t *testing.T, log io.Writer, address string) (*operator.Operator, *operator.Dependencies) {
	t.Helper()
	return inspectedOperatorWith(t, log, operator.DependenciesConfig{InspectorAddress: address})
}

func inspectedOperatorWith(t *testing.T, log io.Writer, config operator.DependenciesConfig) (*operator.Operator, *operator.Dependencies) {
	t.Helper()
	config.Name, config.RESTConfig, config.Scheme, config.Logger = "test", &rest.Config{Host: "http://127.0.0.1:1"}, clientgoscheme.Scheme, logTo(t, log)
	deps, err := operator.NewDependencies(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(deps.Close)
	f, err := deps.NewFramework(framework.Config{
		Source: pushed(t, "websites"), ResourceRouter: routerOf(t, &resource{}), DisableFinalizer: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	o, err := operator.New(operator.Config{Name: "test", Logger: logTo(t, log), Frameworks: []*framework.Framework{f}, Inspector: deps.Inspector})
	if err != nil {
		t.Fatal(err)
	}
	return o, deps
}

func TestInspectorShowsTheFrameworksWhileTheOperatorRuns(t *testing.T) {
	log := &journal{}
	o, _ := inspectedOperator(t, log, "127.0.0.1:0")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx) }()
	operatortest.Eventually(t, "the inspector is served", func() bool { return o.InspectorAddr() != nil })
	httpClient := &http.Client{Transport: &http.Transport{}}
	defer httpClient.CloseIdleConnections()
	url := "http://" + o.InspectorAddr().String() + inspector.Path
	operatortest.Eventually(t, "the reconciliation of the object is known", func() bool {
		answer, err := httpClient.Get(url + "api/v1/overview")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		var overview inspector.Overview
		if err := json.NewDecoder(answer.Body).Decode(&overview); err != nil {
			t.Fatal(err)
		}
		return overview.Operator == "test" && len(overview.Frameworks) == 1 && overview.Frameworks[0].Sources[0].Name == "websites"
	})

	// A live page does not hold up the end.
	stream, err := httpClient.Get(url + "events")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	if want := "serving the inspector operator=test address=" + o.InspectorAddr().String(); !log.contains(want) {
		t.Errorf("the log lacks %q: %v", want, log.all())
	}
}

// certificate writes a certificate of 127.0.0.1 and its key to files, and returns them with a
// client that trusts it.
func certificate(t testing.TB) (certFile, keyFile string, trusting *http.Client) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	pair := server.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	certFile, keyFile = filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, keyFile: {Type: "PRIVATE KEY", Bytes: key}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}}
	return certFile, keyFile, &http.Client{Transport: transport}
}

func TestInspectorIsServedByTLS(t *testing.T) {
	certFile, keyFile, httpClient := certificate(t)
	o, _ := inspectedOperatorWith(t, io.Discard, operator.DependenciesConfig{InspectorAddress: ":0", InspectorCertFile: certFile, InspectorKeyFile: keyFile})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx) }()
	operatortest.Eventually(t, "the inspector is served", func() bool { return o.InspectorAddr() != nil })
	_, port, err := net.SplitHostPort(o.InspectorAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	answer, err := httpClient.Get("https://127.0.0.1:" + port + inspector.Path)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token the answer is %s", answer.Status)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestInspectorBeyondLoopbackWithoutACertificateIsAnErrorBeforeAnythingElse(t *testing.T) {
	_, err := operator.NewDependencies(operator.DependenciesConfig{
		Name: "test", RESTConfig: &rest.Config{Host: "http://127.0.0.1:1"}, Scheme: clientgoscheme.Scheme, Logger: quiet(t), InspectorAddress: ":8082",
	})
	if !framework.IsInvalidConfig(err) || !strings.Contains(err.Error(), "takes a CertFile and a KeyFile") {
		t.Errorf("the error is %v", err)
	}
}

// token returns a token of a new service account that may get some paths.
func token(t *testing.T, c client.Client, namespace, name string, paths ...string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: namespace + "-" + name}}
	if len(paths) > 0 {
		role.Rules = []rbacv1.PolicyRule{{NonResourceURLs: paths, Verbs: []string{"get"}}}
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
	}
	for _, obj := range []client.Object{account, role, binding} {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range paths {
		operatortest.EventuallyAllowed(t, c, authorizationv1.SubjectAccessReviewSpec{
			User:                  "system:serviceaccount:" + namespace + ":" + name,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
		})
	}
	request := &authenticationv1.TokenRequest{}
	if err := c.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

func TestMetricsAskForAuthorization(t *testing.T) {
	server := operatortest.Start(t)
	namespace := server.Namespace(t)
	c, err := client.New(server.RESTConfig(), client.Options{Scheme: clientgoscheme.Scheme, Log: logging.Logr(quiet(t))})
	if err != nil {
		t.Fatal(err)
	}
	scraper, nobody := token(t, c, namespace, "scraper", "/metrics"), token(t, c, namespace, "nobody")
	o, err := operator.New(operator.Config{
		Name: "test", Logger: quiet(t), RESTConfig: server.RESTConfig(), ListenAddress: "127.0.0.1:0", AuthorizeMetrics: true,
		Frameworks: []*framework.Framework{newFramework(t, "websites", pushed(t, "websites"), nil)},
		// A replica that does not lead is asked too.
		LeaderElection: operator.LeaderElectionConfig{Enabled: true, Namespace: namespace, Fence: operator.NewFence()},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx) }()
	operatortest.Eventually(t, "a listener", func() bool { return o.Addr() != nil })
	httpClient := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, test := range []struct {
		path, token string
		want        int
	}{
		{"/metrics", "", 401}, {"/metrics", "wrong", 401}, {"/metrics", nobody, 403}, {"/metrics", scraper, 200}, {"/healthz", "", 200},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+o.Addr().String()+test.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if test.token != "" {
			request.Header.Set("Authorization", "Bearer "+test.token)
		}
		answer, err := httpClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != test.want {
			t.Errorf("%s with the token %.5q is answered %s, want %d", test.path, test.token, answer.Status, test.want)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestTakenPortOfTheInspectorIsAnErrorBeforeAnythingElse(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	o, _ := inspectedOperator(t, io.Discard, listener.Addr().String())
	err = o.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "listen for the inspector") || !strings.Contains(err.Error(), "choose another address") {
		t.Errorf("want an error about the address, got %v", err)
	}
}

func TestInspectorIsOffByDefault(t *testing.T) {
	o, deps := inspectedOperator(t, io.Discard, "")
	if deps.Inspector != nil || o.InspectorAddr() != nil {
		t.Error("there is an inspector that nobody asked for")
	}
}
