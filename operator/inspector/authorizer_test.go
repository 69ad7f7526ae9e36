package inspector_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/operatorkit/operatorkit/operator/inspector"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// cluster is a real API server with service accounts.
type cluster struct {
	t         *testing.T
	config    *rest.Config
	client    kubernetes.Interface
	namespace string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	server := operatortest.Start(t)
	config := server.RESTConfig()
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(httpClient.CloseIdleConnections)
	client, err := kubernetes.NewForConfigAndClient(config, httpClient)
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{t: t, config: config, client: client, namespace: server.Namespace(t)}
}

// token makes a service account that may do this at the inspector's paths, and returns a token of it.
func (c *cluster) token(name string, verbs ...string) string {
	c.t.Helper()
	ctx := c.t.Context()
	accounts := c.client.CoreV1().ServiceAccounts(c.namespace)
	if _, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
	if len(verbs) > 0 {
		c.allow(name, verbs...)
	}
	request, err := accounts.CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return request.Status.Token
}

// allow makes a cluster role and binds a service account to it.
func (c *cluster) allow(account string, verbs ...string) {
	c.t.Helper()
	name := c.namespace + "-" + account
	_, err := c.client.RbacV1().ClusterRoles().Create(c.t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/inspector", "/inspector/*"}, Verbs: verbs}},
	}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	_, err = c.client.RbacV1().ClusterRoleBindings().Create(c.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: c.namespace, Name: account}},
	}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	operatortest.EventuallyAllowed(c.t, operatortest.NewClient(c.t, c.config, nil), authorizationv1.SubjectAccessReviewSpec{
		User:                  "system:serviceaccount:" + c.namespace + ":" + account,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/inspector", Verb: verbs[0]},
	})
}

// ask returns the status of the answer to a request with a token.
func (w *world) ask(method, path, authorization string) int {
	w.t.Helper()
	request := w.request(method, path, queryOf("home"))
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	return w.do(request)
}

func TestElsewhereOnlyThoseMayLookWhomTheAPIServerLets(t *testing.T) {
	c := newCluster(t)
	looker, planner, nobody := c.token("looker", "get"), c.token("planner", "get", "plan"), c.token("nobody")
	certFile, keyFile, _ := writeCertificate(t, t.TempDir())
	w := start(t, inspector.Config{Address: ":0", RESTConfig: c.config, CertFile: certFile, KeyFile: keyFile}, []*corev1.ConfigMap{site("home")})

	for name, test := range map[string]struct {
		authorization string
		look, plan    int
	}{
		"no token":            {"", 401, 401},
		"a wrong token":       {"Bearer wrong", 401, 401},
		"an altered token":    {"Bearer " + looker[:len(looker)-4] + "AAAA", 401, 401},
		"another scheme":      {"Basic " + looker, 401, 401},
		"an empty token":      {"Bearer ", 401, 401},
		"no permission":       {"Bearer " + nobody, 403, 403},
		"permission to look":  {"Bearer " + looker, 200, 403},
		"permission to plan":  {"Bearer " + planner, 200, 200},
		"the scheme in small": {"bearer " + planner, 200, 200},
	} {
		for _, path := range []string{"", "objects", objectPath("home"), "api/v1/overview", "api/v1/objects", "assets/script.js"} {
			if got := w.ask(http.MethodGet, path, test.authorization); got != test.look {
				t.Errorf("%s: GET %q is answered %d, want %d", name, path, got, test.look)
			}
		}
		for _, path := range []string{"object", "api/v1/plan"} {
			if got := w.ask(http.MethodPost, path, test.authorization); got != test.plan {
				t.Errorf("%s: POST %q is answered %d, want %d", name, path, got, test.plan)
			}
		}
	}
	if got := w.ask(http.MethodGet, "events", ""); got != http.StatusUnauthorized {
		t.Errorf("the stream is answered %d without a token, want 401", got)
	}
	answer, err := w.client.Get(w.url + "/inspector/")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if got := answer.Header.Get("WWW-Authenticate"); got != `Bearer realm="inspector"` {
		t.Errorf("WWW-Authenticate is %q", got)
	}
}

func TestPermissionThatIsTakenAwayEnds(t *testing.T) {
	c := newCluster(t)
	token := "Bearer " + c.token("former", "get")
	authorizer, err := inspector.NewKubernetesAuthorizer(inspector.KubernetesAuthorizerConfig{RESTConfig: c.config, TTL: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	w := start(t, inspector.Config{Authorizer: authorizer}, []*corev1.ConfigMap{site("home")})
	if got := w.ask(http.MethodGet, "", token); got != http.StatusOK {
		t.Fatalf("before, the answer is %d", got)
	}
	if err := c.client.RbacV1().ClusterRoleBindings().Delete(t.Context(), c.namespace+"-former", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the permission has ended", func() error {
		if got := w.ask(http.MethodGet, "", token); got != http.StatusForbidden {
			return fmt.Errorf("the answer is %d, want 403", got)
		}
		return nil
	})
}

func TestRefusalsAreRememberedAndPushOutNobody(t *testing.T) {
	c := newCluster(t)
	looker, nobody := "Bearer "+c.token("looker", "get"), "Bearer "+c.token("nobody")
	var tokens, accesses atomic.Int64
	config := rest.CopyConfig(c.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return asked(func(r *http.Request) (*http.Response, error) {
			switch path.Base(r.URL.Path) {
			case "tokenreviews":
				tokens.Add(1)
			case "subjectaccessreviews":
				accesses.Add(1)
			}
			return next.RoundTrip(r)
		})
	})
	authorizer, err := inspector.NewKubernetesAuthorizer(inspector.KubernetesAuthorizerConfig{RESTConfig: config, TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	w := start(t, inspector.Config{Authorizer: authorizer}, []*corev1.ConfigMap{site("home")})
	// ask asks 200 times, by ten at once, and expects so many reviews.
	ask := func(authorization string, want int, reviews, of int64) {
		t.Helper()
		tokens.Store(0)
		accesses.Store(0)
		var asking sync.WaitGroup
		for range 10 {
			asking.Go(func() {
				for range 20 {
					if got := w.ask(http.MethodGet, "", authorization); got != want {
						t.Errorf("the answer is %d, want %d", got, want)
					}
				}
			})
		}
		asking.Wait()
		if tokens.Load() != reviews || accesses.Load() != of {
			t.Errorf("200 requests are %d reviews of tokens and %d of accesses, want %d and %d", tokens.Load(), accesses.Load(), reviews, of)
		}
	}
	ask("Bearer wrong", http.StatusUnauthorized, 1, 0)
	ask(nobody, http.StatusForbidden, 1, 1)
	ask(looker, http.StatusOK, 1, 1)
	if testing.Short() {
		t.Skip("left to make test-all: many different tokens")
	}
	for n := range 1100 {
		w.ask(http.MethodGet, "", fmt.Sprintf("Bearer wrong-%d", n))
	}
	ask(looker, http.StatusOK, 0, 0)
}

// asked is a round tripper that is a function.
type asked func(*http.Request) (*http.Response, error)

func (a asked) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

func TestAPIServerThatCannotBeAskedLetsNobodyIn(t *testing.T) {
	certFile, keyFile, _ := writeCertificate(t, t.TempDir())
	w := start(t, inspector.Config{Address: ":0", RESTConfig: &rest.Config{Host: "http://127.0.0.1:1"}, CertFile: certFile, KeyFile: keyFile}, []*corev1.ConfigMap{site("home")})
	if got := w.ask(http.MethodGet, "", "Bearer token"); got != http.StatusInternalServerError {
		t.Errorf("the answer is %d, want 500", got)
	}
}

func TestStrangersTakeNothingOfTheRateOfTheOperator(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "status": {"authenticated": false}}`)
	}))
	defer server.Close()
	const oneAtAll, burst = 0.001, 1
	ofOperator := flowcontrol.NewTokenBucketRateLimiter(oneAtAll, burst)
	authorizer, err := inspector.NewKubernetesAuthorizer(inspector.KubernetesAuthorizerConfig{
		RESTConfig: &rest.Config{Host: server.URL, QPS: oneAtAll, Burst: burst, RateLimiter: ofOperator},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer authorizer.Close()
	for n := range 2 {
		r := httptest.NewRequest(http.MethodGet, inspector.Path, nil)
		r.Header.Set("Authorization", fmt.Sprintf("Bearer stranger-%d", n))
		if err := authorizer.Authorize(r, "get"); !errors.Is(err, inspector.ErrUnauthenticated) {
			t.Errorf("stranger %d: want ErrUnauthenticated, got %v", n, err)
		}
	}
	if !ofOperator.TryAccept() {
		t.Error("the operator has to wait for what strangers have asked")
	}
}

func TestWhatSomebodyWithoutRightsAsksForTakesNoMemory(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		if path.Base(r.URL.Path) == "tokenreviews" {
			_, _ = io.WriteString(w, `{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "status": {"authenticated": true, "user": {"username": "nobody"}}}`)
			return
		}
		_, _ = io.WriteString(w, `{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "status": {"allowed": false}}`)
	}))
	defer server.Close()
	authorizer, err := inspector.NewKubernetesAuthorizer(inspector.KubernetesAuthorizerConfig{
		RESTConfig: &rest.Config{Host: server.URL}, TTL: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer authorizer.Close()
	ask := func(n int) {
		t.Helper()
		r := httptest.NewRequest(http.MethodGet, fmt.Sprintf("%s/%d/%s", inspector.Path, n, strings.Repeat("x", 60<<10)), nil)
		r.Header.Set("Authorization", "Bearer token")
		if err := authorizer.Authorize(r, "get"); !errors.Is(err, inspector.ErrForbidden) {
			t.Fatalf("want ErrForbidden, got %v", err)
		}
	}
	ask(0)
	before := heap()
	for n := range 100 {
		ask(n + 1)
	}
	if grown := heap() - before; grown > 1<<20 {
		t.Errorf("100 answers about paths of 60 KiB take %d bytes", grown)
	}
	runtime.KeepAlive(authorizer)
}
