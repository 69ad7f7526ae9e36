package clusteraccess_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// audience is whom the tokens of the issuer are for, and oidcPrefix what clusters put before their names.
const (
	audience   = "clusters"
	oidcPrefix = "oidc:"
)

// issuer gives tokens to those whom a test names, and its keys to everybody, over TLS.
type issuer struct {
	t      *testing.T
	server *httptest.Server
	key    *rsa.PrivateKey
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{t: t, key: key}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		i.answer(w, map[string]any{
			"issuer": i.server.URL, "jwks_uri": i.server.URL + "/keys", "response_types_supported": []string{"id_token"},
			"subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"RS256"},
		})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		i.answer(w, map[string]any{"keys": []map[string]string{{
			"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "1",
			"n": encoded(key.N.Bytes()), "e": encoded(big.NewInt(int64(key.E)).Bytes()),
		}}})
	})
	i.server = httptest.NewUnstartedServer(mux)
	i.server.Config.ErrorLog = stdlog.New(io.Discard, "", 0)
	i.server.StartTLS()
	t.Cleanup(i.server.Close)
	return i
}

func (i *issuer) answer(w http.ResponseWriter, content any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(content); err != nil {
		i.t.Error(err)
	}
}

func encoded(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// token is signed by the issuer.
func (i *issuer) token(user string, lifetime time.Duration, groups ...string) string {
	var parts []string
	now := time.Now()
	for _, part := range []map[string]any{
		{"alg": "RS256", "typ": "JWT", "kid": "1"},
		{
			"iss": i.server.URL, "aud": audience, "sub": user, "groups": append([]string{}, groups...),
			"iat": now.Add(-time.Hour).Unix(), "exp": now.Add(lifetime).Unix(),
		},
	} {
		data, err := json.Marshal(part)
		if err != nil {
			i.t.Error(err)
		}
		parts = append(parts, encoded(data))
	}
	signed := strings.Join(parts, ".")
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, sum[:])
	if err != nil {
		i.t.Error(err)
	}
	return signed + "." + encoded(signature)
}

// trusted is the issuer as a Cluster lists it.
func (i *issuer) trusted() v1alpha1.OIDCIssuer {
	return v1alpha1.OIDCIssuer{URL: i.server.URL, UsernamePrefix: oidcPrefix, GroupsPrefix: oidcPrefix}
}

// newOIDCWorld is a world whose cluster accepts the tokens of an issuer, and is the MCP of the tenant, under the name "c".
func newOIDCWorld(t *testing.T) (*world, *issuer) {
	t.Helper()
	w, i := newWorld(t), newIssuer(t)
	mapping := func(claim string) map[string]string { return map[string]string{"claim": claim, "prefix": oidcPrefix} }
	config, err := yaml.Marshal(map[string]any{
		"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
		"jwt": []any{map[string]any{
			"issuer": map[string]any{
				"url": i.server.URL, "audiences": []string{audience},
				"certificateAuthority": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.server.Certificate().Raw})),
			},
			"claimMappings": map[string]any{"username": mapping("sub"), "groups": mapping("groups")},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "authentication.yaml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	w.remote, err = operatortest.Run(t.Context(), operatortest.Config{APIServerFlags: []string{"--authentication-config=" + file}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.remote.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	w.admin = w.client(w.remote.RESTConfig())
	w.policy.Identities = []v1alpha1.OIDCIdentity{{Issuer: i.server.URL, Username: "provider-*", Groups: []string{"db-*"}}}
	cluster, secret := newCluster(t, "c", w.remote.RESTConfig(), "mcp")
	cluster.Labels = map[string]string{clusteraccess.TenantLabel: "tenant"}
	cluster.Spec.OIDCIssuers = []v1alpha1.OIDCIssuer{i.trusted()}
	w.create(secret, cluster)
	return w, i
}

// with is a configuration with a token in place of all other credentials.
func with(config *rest.Config, token string) *rest.Config {
	c := rest.AnonymousClientConfig(config)
	c.QPS, c.BearerToken = -1, token
	return c
}

func TestAProviderSignsInByOIDCInPlaceOfIssuedTokens(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: it starts a control plane of its own, that knows an issuer")
	}
	w, i := newOIDCWorld(t)
	namespace := w.remoteNamespace()
	var token atomic.Value
	token.Store(i.token("provider-postgres", time.Hour))
	ask := func(reconcile.Request) (*clusteraccess.Ask, error) {
		return &clusteraccess.Ask{
			Permissions: []v1alpha1.Permission{inNamespace(namespace, "create", "list", "watch")},
			OIDC:        &v1alpha1.OIDCIdentity{Issuer: i.server.URL, Username: "provider-postgres"},
		}, nil
	}
	p := w.newProvider(func(c *clusteraccess.ProviderConfig) {
		c.MCP, c.Workload = ask, nil
		c.OIDCToken = func(_ context.Context, of string) (string, error) {
			if of != i.server.URL {
				return "", fmt.Errorf("a token of %s is wanted", of)
			}
			return token.Load().(string), nil
		}
	})
	w.start()
	request := object("db")
	ar, secret := w.asked(p, request)
	if ar.Status.ServiceAccount != nil || ar.Status.ExpirationTime != nil || ar.Status.RenewalTime != nil {
		t.Errorf("the status tells of a token: %+v", ar.Status)
	}
	if _, config := w.credentials(ar); config.BearerToken != "" || config.Host != w.remote.RESTConfig().Host {
		t.Errorf("the kubeconfig leads to %s, with a token: %t", config.Host, config.BearerToken != "")
	}
	left, err := w.remains(ar.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range left {
		if _, is := o.(*corev1.ServiceAccount); is {
			t.Errorf("there is a service account %s", o.GetName())
		}
	}

	c := w.mcp(p, request)
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "made"}}
	operatortest.Eventually(t, "the rights are in force", func() error {
		err := c.Client().Create(t.Context(), made.DeepCopy())
		return client.IgnoreAlreadyExists(err)
	})
	if name, err := whoAmI(t.Context(), c.Client()); err != nil || name != oidcPrefix+"provider-postgres" {
		t.Errorf("the client is %q, %v", name, err)
	}
	if err := c.Client().List(t.Context(), &corev1.SecretList{}, client.InNamespace(namespace)); !apierrors.IsForbidden(err) {
		t.Errorf("listing Secrets: err = %v, want 403", err)
	}
	if name, err := watchBySocket(t.Context(), c.RESTConfig(), namespace, "configmaps"); err != nil || name == "" {
		t.Errorf("a WebSocket of RESTConfig: %q, %v", name, err)
	}

	// A token that has run out is refused, which is told; the next one works, by the same client.
	token.Store(i.token("provider-postgres", -time.Minute))
	operatortest.Eventually(t, "it is told that the token is refused", func() error {
		_ = c.Client().List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(namespace))
		if _, err := p.MCPCluster(t.Context(), request); err == nil || !strings.Contains(err.Error(), string(target.CredentialRefused)) {
			return errors.Join(err, errors.New("not told"))
		}
		return nil
	})
	token.Store(i.token("provider-postgres", time.Hour))
	operatortest.Eventually(t, "the same client works with the next token", func() error {
		return c.Client().List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(namespace))
	})

	w.looked(ar)
	if _, after := w.asked(p, request); after.ResourceVersion != secret.ResourceVersion {
		t.Error("a Secret without a token is renewed")
	}
	w.done("access is taken away", p.ReconcileDelete, request)
	w.wantNothingLeft()
	if err := w.client(with(w.remote.RESTConfig(), token.Load().(string))).List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(namespace)); !apierrors.IsForbidden(err) {
		t.Errorf("without access, err = %v, want 403", err)
	}
}

func TestAccessForAGroupIsForItsMembersAndNobodyElse(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: it starts a control plane of its own, that knows an issuer")
	}
	w, i := newOIDCWorld(t)
	namespace := w.remoteNamespace()
	ar := newAccess("people", "c", inNamespace(namespace, "list"))
	ar.Spec.OIDC = &v1alpha1.OIDCIdentity{Issuer: i.server.URL, Groups: []string{"db-admins"}}
	w.create(ar)
	w.start()
	w.granted(ar)
	_, config := w.credentials(ar)
	list := func(token string) error {
		return w.client(with(config, token)).List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(namespace))
	}
	operatortest.Eventually(t, "a member of the group may list", func() error { return list(i.token("alice", time.Hour, "db-admins", "others")) })
	if err := list(i.token("mallory", time.Hour, "others")); !apierrors.IsForbidden(err) {
		t.Errorf("somebody else: err = %v, want 403", err)
	}
	if err := list(newIssuer(t).token("alice", time.Hour, "db-admins")); !apierrors.IsUnauthorized(err) {
		t.Errorf("a member by the word of another issuer: err = %v, want 401", err)
	}

	w.patch(ar, `{"spec":{"oidc":{"groups":["db-readers"]}}}`)
	operatortest.Eventually(t, "another group is asked for, and this one may not any more", func() error {
		if err := list(i.token("alice", time.Hour, "db-admins")); !apierrors.IsForbidden(err) {
			return errors.Join(err, errors.New("it still may"))
		}
		return list(i.token("bob", time.Hour, "db-readers"))
	})
	if err := w.user.Delete(t.Context(), ar); err != nil {
		t.Fatal(err)
	}
	w.wantGone(ar)
	w.wantNothingLeft()
}

func TestIdentitiesThatThePolicyOrTheClusterDoesNotKnowAreDenied(t *testing.T) {
	w := newWorld(t)
	const known = "https://issuer.example.com"
	cluster, secret := newCluster(t, "c", w.remote.RESTConfig(), "mcp")
	cluster.Spec.OIDCIssuers = []v1alpha1.OIDCIssuer{{URL: known}, {URL: "https://listed.example.com", UsernamePrefix: oidcPrefix}}
	w.create(secret, cluster)
	w.policy.Identities = []v1alpha1.OIDCIdentity{
		{Issuer: known, Username: "*", Groups: []string{"*"}}, {Issuer: "https://unlisted.example.com", Username: "*"},
	}
	w.start()
	for name, c := range map[string]struct {
		identity     v1alpha1.OIDCIdentity
		reason, says string
	}{
		"user":    {v1alpha1.OIDCIdentity{Issuer: "https://listed.example.com", Username: "alice"}, v1alpha1.ReasonExceedsPolicy, "spec.oidc.username (alice of https://listed.example.com)"},
		"group":   {v1alpha1.OIDCIdentity{Issuer: "https://unlisted.example.com", Groups: []string{"admins"}}, v1alpha1.ReasonExceedsPolicy, "spec.oidc.groups[0] (admins of https://unlisted.example.com)"},
		"issuer":  {v1alpha1.OIDCIdentity{Issuer: "https://unlisted.example.com", Username: "alice"}, v1alpha1.ReasonIssuerUnknown, "Cluster c does not list the issuer https://unlisted.example.com"},
		"masters": {v1alpha1.OIDCIdentity{Issuer: known, Groups: []string{"system:masters"}}, v1alpha1.ReasonExceedsPolicy, `"system:masters" begins with "system:"`},
	} {
		ar := newAccess(name, "c")
		ar.Spec.OIDC = &c.identity
		w.create(ar)
		w.wants(ar, v1alpha1.PhaseDenied, c.reason)
		if !strings.Contains(message(ar), c.says) {
			t.Errorf("%s: the message is %q, which lacks %q", name, message(ar), c.says)
		}
	}
	w.wantNothingLeft()
	for what, identity := range map[string]*v1alpha1.OIDCIdentity{
		"set username, groups or both": {Issuer: known},
		"should match":                 {Issuer: "http://issuer.example.com", Username: "alice"},
	} {
		ar := newAccess("wrong", "c")
		ar.Namespace, ar.Spec.OIDC = w.namespace, identity
		if err := w.user.Create(t.Context(), ar); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), what) {
			t.Errorf("err = %v, want %q", err, what)
		}
	}
	p := w.newProvider(func(c *clusteraccess.ProviderConfig) {
		c.Workload, c.MCP = nil, func(reconcile.Request) (*clusteraccess.Ask, error) {
			return &clusteraccess.Ask{ClusterRef: "c", OIDC: &v1alpha1.OIDCIdentity{Issuer: known, Username: "alice"}}, nil
		}
	})
	request := object("db")
	w.done("access is granted", p.Reconcile, request)
	operatortest.Eventually(t, "it is said that there is nothing to sign in with", func() error {
		_, err := p.MCPCluster(t.Context(), request)
		if err == nil || !strings.Contains(err.Error(), "set clusteraccess.Config.OIDCToken") {
			return errors.Join(err, errors.New("not said"))
		}
		return nil
	})
	w.done("access is taken away", p.ReconcileDelete, request)
}

func TestATokenIsReadFromItsFileEachTime(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	read := clusteraccess.TokenFile(file)
	if _, err := read(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "read the token of the issuer") {
		t.Errorf("without a file, err = %v", err)
	}
	for _, want := range []string{"first", "second"} {
		if err := os.WriteFile(file, []byte(want+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := read(t.Context(), ""); err != nil || got != want {
			t.Errorf("the token is %q, %v, want %q", got, err, want)
		}
	}
}
