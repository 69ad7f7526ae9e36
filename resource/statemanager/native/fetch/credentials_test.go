package fetch_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch"
)

func TestSecretsThatCanNotBeUsed(t *testing.T) {
	for name, test := range map[string]struct {
		data map[string]string
		says string
	}{
		"empty":            {nil, "none of the keys that are known: give it at least one of username, password, token, .dockerconfigjson, tls.crt"},
		"other keys":       {map[string]string{"user": "ann"}, "none of the keys"},
		"no password":      {map[string]string{"username": "ann"}, "only one of the keys username and password"},
		"no user":          {map[string]string{"password": "secret-1"}, "only one of the keys username and password"},
		"two logins":       {map[string]string{"username": "ann", "password": "secret-1", "token": "secret-2"}, "more than one of the keys"},
		"no key":           {map[string]string{"tls.crt": "secret-1"}, "only one of the keys tls.crt and tls.key"},
		"bad key":          {map[string]string{"tls.crt": "secret-1", "tls.key": "secret-2"}, "no certificate with its key"},
		"bad certificates": {map[string]string{"ca.crt": "secret-1"}, "ca.crt has no certificate"},
		"bad logins":       {map[string]string{".dockerconfigjson": "secret-1"}, ".dockerconfigjson can't be read"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "login"}, Data: map[string][]byte{}}
			for key, value := range test.data {
				s.Data[key] = []byte(value)
			}
			_, err := fetch.CredentialsFromSecret(s)
			fails(t, err, fetch.ErrInvalid, true, "Secret shop/login", test.says)
			if strings.Contains(err.Error(), "secret-") {
				t.Error("the error has a secret in it:", err)
			}
		})
	}
}

func TestCredentialsDoNotPrint(t *testing.T) {
	c := secret(t, map[string]string{"username": "ann", "password": "secret-1", "keyring": "secret-2"})
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(&out, nil)).Info("login", "with", c, "in", struct{ C fetch.Credentials }{c})
	slog.New(slog.NewTextHandler(&out, nil)).Info("login", "with", c, "in", []any{c})
	encoded, err := json.Marshal(map[string]any{"c": c, "p": &c})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"c":"credentials of Secret shop/login","p":"credentials of Secret shop/login"}`; string(encoded) != want {
		t.Errorf("as JSON they are %s: want %s", encoded, want)
	}
	fmt.Fprintf(&out, "%v %+v %#v %s %v %+v", c, c, c, c, &c, struct{ C fetch.Credentials }{c})
	if text := out.String(); strings.Contains(text, "secret-") || strings.Contains(text, "115 101 99") || strings.Contains(text, "0x73") || !strings.Contains(text, "Secret shop/login") {
		t.Error(text)
	}
}

func TestRefusedCredentials(t *testing.T) {
	// The servers repeat the password in their answers.
	charts := newStore(t)
	charts.pushChart(t, "app:1.0.0", chartOf(t, "app", "1.0.0"))
	with := func(s *server) fetch.Credentials {
		return secret(t, map[string]string{"username": "ann", "password": "secret-1", "ca.crt": s.ca()})
	}
	says := []string{"credentials of the Secret shop/login are refused", "look at the keys username, password of the Secret shop/login"}
	for name, handler := range map[string]http.Handler{
		"basic":             login("ann", "secret-2", charts.front(t)),
		"login for a token": tokens("ann", "secret-2", charts.front(t)),
	} {
		t.Run(name, func(t *testing.T) {
			s := serveTLS(t, handler)
			for _, address := range []string{s.URL, oci(s)} {
				if address == s.URL && name != "basic" {
					continue
				}
				_, err := newFetcher(t, fetch.Config{}).Chart(t.Context(), chart(address), with(s))
				fails(t, err, fetch.ErrUnauthorized, true, says...)
				if strings.Contains(err.Error(), "secret-") {
					t.Error("the error has a secret in it:", err)
				}
				_, err = newFetcher(t, fetch.Config{}).Chart(t.Context(), chart(address), secret(t, map[string]string{"ca.crt": s.ca()}))
				fails(t, err, fetch.ErrUnauthorized, true, "give the Secret shop/login the keys username and password, token or .dockerconfigjson")
			}
		})
	}
}

func TestAddressWithCredentials(t *testing.T) {
	_, err := newFetcher(t, fetch.Config{}).Chart(t.Context(), chart("https://ann:secret-1@charts.example.com/x?token=secret-2"), fetch.Credentials{})
	fails(t, err, fetch.ErrInvalid, true, "of https://charts.example.com/x:", "put them as username and password into a Secret")
	if strings.Contains(err.Error(), "secret-") {
		t.Error("the error has a secret in it:", err)
	}
}

func TestQueriesAreInNoError(t *testing.T) {
	hidden := "https://127.0.0.1:1/a.tgz?signature=secret-2"
	s := serve(t, http.RedirectHandler(hidden, http.StatusFound))
	_, err := newFetcher(t, fetch.Config{}).Files(t.Context(), v1alpha1.Artifact{URL: s.URL + "/a?token=secret-1"}, fetch.Credentials{})
	fails(t, err, fetch.ErrUnavailable, false, "connection refused")
	if strings.Contains(err.Error(), "secret-") {
		t.Error("the error has a secret in it:", err)
	}
}

func TestCredentialsGoToTheirOriginOnly(t *testing.T) {
	archive := chartOf(t, "app", "1.0.0")
	files := pack(t, entry{name: "a"})
	charts := newStore(t)
	charts.pushChart(t, "app:1.0.0", archive)
	// Another port of the same host is another origin, also when it leads on to itself.
	var elsewhere *server
	elsewhere = serveTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path, ok := strings.CutPrefix(r.URL.Path, "/first"); ok {
			http.Redirect(w, r, elsewhere.URL+path, http.StatusTemporaryRedirect)
			return
		}
		site{"/app.tgz": archive, "/files.tgz": files}.ServeHTTP(w, r)
	}))
	away := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+"/first"+r.URL.Path, http.StatusTemporaryRedirect)
	})
	index := func(address string) []byte {
		return fmt.Appendf(nil, "entries: {app: [{version: 1.0.0, urls: [%q]}]}", address)
	}
	routes := http.NewServeMux()
	routes.Handle("/files.tgz", away)
	routes.Handle("/redirecting/app.tgz", http.StripPrefix("/redirecting", away))
	routes.Handle("/redirecting/index.yaml", site{"/redirecting/index.yaml": index("app.tgz")})
	routes.Handle("/linking/index.yaml", site{"/linking/index.yaml": index(elsewhere.URL + "/app.tgz")})
	blobs := login("ann", "secret-1", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/blobs/") {
			http.Redirect(w, r, elsewhere.URL+"/first/app.tgz", http.StatusTemporaryRedirect)
			return
		}
		charts.front(t).ServeHTTP(w, r)
	}))
	routes.Handle("/v2/", blobs)
	for _, kind := range []map[string]string{
		{"username": "ann", "password": "secret-1"},
		{"token": "opened"},
	} {
		guard := login("ann", "secret-1", routes)
		if kind["token"] != "" {
			guard = tokens("ann", "secret-1", routes)
		}
		s := serveTLS(t, guard)
		kind["ca.crt"] = s.ca() + elsewhere.ca()
		with, f := secret(t, kind), newFetcher(t, fetch.Config{})
		for _, address := range []string{s.URL + "/redirecting", s.URL + "/linking", oci(s)} {
			if kind["token"] != "" && address == oci(s) {
				continue
			}
			if _, err := f.Chart(t.Context(), chart(address), with); err != nil {
				t.Error(err)
			}
		}
		if _, err := f.Files(t.Context(), v1alpha1.Artifact{URL: s.URL + "/files.tgz"}, with); err != nil {
			t.Error(err)
		}
	}
	if elsewhere.asked("GET /app.tgz") < 5 {
		t.Errorf("the other server was asked only for %v", elsewhere.requests)
	}
	if logins := strings.Join(elsewhere.loggedIn(), ""); logins != "" {
		t.Errorf("the other server got %s", logins)
	}
}

func TestIndexThatLeadsToAServerWithALoginOfItsOwn(t *testing.T) {
	elsewhere := serve(t, login("bob", "secret-2", http.NotFoundHandler()))
	for _, address := range []string{elsewhere.URL + "/app.tgz", oci(elsewhere) + "/app:1.0.0"} {
		s := serve(t, site{"/index.yaml": fmt.Appendf(nil, "entries: {app: [{version: 1.0.0, urls: [%q]}]}", address)})
		with := secret(t, map[string]string{"username": "ann", "password": "secret-1"})
		_, err := newFetcher(t, fetch.Config{}).Chart(t.Context(), chart(s.URL), with)
		fails(t, err, fetch.ErrUnauthorized, true, "leads to "+elsewhere.Listener.Addr().String(), "name that server as the repository")
	}
}

func TestRegistryDoesNotGetALoginByRedirecting(t *testing.T) {
	// Whom a registry redirects to asks for a login, for a server of its own.
	thief := serveTLS(t, nil)
	thief.become(tokens("nobody", "", http.NotFoundHandler()))
	s := serveTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, thief.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	with := secret(t, map[string]string{"username": "ann", "password": "secret-1", "ca.crt": s.ca() + thief.ca()})
	_, err := newFetcher(t, fetch.Config{}).Chart(t.Context(), chart(oci(s)), with)
	fails(t, err, fetch.ErrUnauthorized, true)
	if logins := strings.Join(thief.loggedIn(), ""); logins != "" || thief.asked("") == 0 {
		t.Errorf("the other server got %q in %d requests", logins, thief.asked(""))
	}
}

func TestCacheIsForThoseWhoMayFetch(t *testing.T) {
	archive := chartOf(t, "app", "1.0.0")
	s := serve(t, login("ann", "secret-1", repository(map[string][]byte{"app-1.0.0.tgz": archive})))
	f := newFetcher(t, fetch.Config{})
	pinned := chart(s.URL)
	pinned.Digest = digest(archive)
	for _, from := range []v1alpha1.HelmChart{chart(s.URL), pinned} {
		if _, err := f.Chart(t.Context(), from, secret(t, map[string]string{"username": "ann", "password": "secret-1"})); err != nil {
			t.Fatal(err)
		}
		for _, with := range []fetch.Credentials{{}, secret(t, map[string]string{"username": "ann", "password": "guess"})} {
			_, err := f.Chart(t.Context(), from, with)
			fails(t, err, fetch.ErrUnauthorized, true)
			// Nor does the index tell which versions there are.
			from.Version = "9.9.9"
			_, err = f.Chart(t.Context(), from, with)
			fails(t, err, fetch.ErrUnauthorized, true)
			from.Version = "1.0.0"
		}
	}
}
