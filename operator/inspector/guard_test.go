package inspector_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/inspector"
)

func TestAnswersCarryAStrictPolicy(t *testing.T) {
	w := start(t, inspector.Config{}, []*corev1.ConfigMap{site("home")})
	w.reconciled(1)
	for _, path := range []string{"", "objects", objectPath("home"), "assets/script.js", "assets/style.css", "api/v1/overview", "nowhere"} {
		answer, err := w.client.Get(w.url + "/inspector/" + path)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		policy := answer.Header.Get("Content-Security-Policy")
		has(t, policy, "default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'")
		lacks(t, policy, "unsafe", "http:", "https:", "*")
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store"} {
			if got := answer.Header.Get(name); got != want {
				t.Errorf("%q: %s is %q, want %q", path, name, got, want)
			}
		}
	}
	for _, path := range []string{"", "objects", objectPath("home")} {
		page := w.get(path, http.StatusOK)
		lacks(t, page, "<style", "style=", "<script>", "onclick", "onload", "javascript:", "http://", "https://")
	}
}

func TestOnLoopbackOnlyItsNamesAreAnswered(t *testing.T) {
	w := start(t, inspector.Config{}, []*corev1.ConfigMap{site("home")})
	for host, want := range map[string]int{
		"localhost": 200, "localhost:8082": 200, "127.0.0.1:8082": 200, "[::1]:8082": 200, "[::1]": 200, "inspector.localhost": 200,
		"evil.example.com": 403, "evil.example.com:8082": 403, "127.0.0.1.evil.example.com": 403, "192.0.2.1": 403,
		"localhost.evil.example.com": 403, "0.0.0.0:8082": 403,
	} {
		request := w.request(http.MethodGet, "api/v1/overview", nil)
		request.Host = host
		if got := w.do(request); got != want {
			t.Errorf("host %s is answered %d, want %d", host, got, want)
		}
	}
}

func TestRequestOfAnotherSiteMakesNoPlan(t *testing.T) {
	w := start(t, inspector.Config{}, []*corev1.ConfigMap{site("home")})
	w.reconciled(1)
	for name, test := range map[string]struct {
		headers map[string]string
		want    int
	}{
		"the page itself":        {map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": w.url}, 200},
		"no browser":             {nil, 200},
		"another site":           {map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example.com"}, 403},
		"a neighbour":            {map[string]string{"Sec-Fetch-Site": "same-site", "Origin": "http://127.0.0.1:1"}, 403},
		"an old browser":         {map[string]string{"Origin": "https://evil.example.com"}, 403},
		"a frame without origin": {map[string]string{"Origin": "null"}, 403},
	} {
		for _, path := range []string{"object", "api/v1/plan"} {
			request := w.request(http.MethodPost, path, queryOf("home"))
			for header, value := range test.headers {
				request.Header.Set(header, value)
			}
			if got := w.do(request); got != test.want {
				t.Errorf("%s: POST %s is answered %d, want %d", name, path, got, test.want)
			}
		}
	}
}

func TestRequestThatAnotherSiteMakesIsRefused(t *testing.T) {
	w := start(t, inspector.Config{}, []*corev1.ConfigMap{site("home")})
	w.reconciled(1)
	followed := map[string]string{"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Fetch-User": "?1"}
	for name, test := range map[string]struct {
		site, origin string
		more         map[string]string
		want         int
	}{
		"the page itself":            {"same-origin", "", nil, 200},
		"the address bar":            {"none", "", followed, 200},
		"no browser":                 {"", "", nil, 200},
		"another site":               {"cross-site", "", nil, 403},
		"a neighbour":                {"same-site", "", nil, 403},
		"a frame":                    {"cross-site", "", map[string]string{"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe", "Sec-Fetch-User": "?1"}, 403},
		"a window that opens itself": {"cross-site", "", map[string]string{"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 403},
		"a link that is followed":    {"cross-site", "", followed, 200},
		"an old browser":             {"", "https://evil.example.com", nil, 403},
	} {
		for _, path := range []string{"", "objects", objectPath("home"), "api/v1/overview", "api/v1/objects", "assets/script.js"} {
			request := w.request(http.MethodGet, path, nil)
			for header, value := range test.more {
				request.Header.Set(header, value)
			}
			for header, value := range map[string]string{"Sec-Fetch-Site": test.site, "Origin": test.origin} {
				if value != "" {
					request.Header.Set(header, value)
				}
			}
			if got := w.do(request); got != test.want {
				t.Errorf("%s: GET %q is answered %d, want %d", name, path, got, test.want)
			}
		}
	}
}

func TestRequestThatIsTooLargeIsRefused(t *testing.T) {
	w := start(t, inspector.Config{}, []*corev1.ConfigMap{site("home")})
	form := queryOf("home")
	form.Set("more", strings.Repeat("x", 16<<10))
	for _, path := range []string{"object", "api/v1/plan"} {
		if got := w.do(w.request(http.MethodPost, path, form)); got != http.StatusRequestEntityTooLarge {
			t.Errorf("POST %s is answered %d, want 413", path, got)
		}
	}
}

func TestLookingIsGetAndPlanningIsPost(t *testing.T) {
	w := start(t, inspector.Config{}, []*corev1.ConfigMap{site("home")})
	w.reconciled(1)
	for path, method := range map[string]string{
		"": "POST", "objects": "POST", "events": "POST", "api/v1/objects": "DELETE", "api/v1/object": "PUT", "api/v1/plan": "GET",
	} {
		if got := w.do(w.request(method, path, queryOf("home"))); got != http.StatusMethodNotAllowed {
			t.Errorf("%s %s is answered %d, want 405", method, path, got)
		}
	}
}

func TestWithoutAnAuthorizerNothingIsAnsweredBesideLoopback(t *testing.T) {
	i, err := inspector.New(inspector.Config{Name: "o", Logger: quiet(t)})
	if err != nil {
		t.Fatal(err)
	}
	// A handler that was mounted elsewhere by mistake.
	request := httptest.NewRequest(http.MethodGet, "http://localhost/inspector/", nil)
	for _, local := range []net.Addr{nil, &net.TCPAddr{IP: net.ParseIP("192.0.2.7"), Port: 80}} {
		recorder := httptest.NewRecorder()
		i.ServeHTTP(recorder, withLocalAddr(request, local))
		if recorder.Code != http.StatusForbidden {
			t.Errorf("on %v the answer is %d, want 403", local, recorder.Code)
		}
	}
}

func TestBadConfigurationNamesEveryFault(t *testing.T) {
	for name, test := range map[string]struct {
		config inspector.Config
		want   []string
	}{
		"everything":       {inspector.Config{}, []string{"Name must not be empty", "Logger must not be nil"}},
		"an open door":     {inspector.Config{Address: ":8082"}, []string{`Address ":8082" is not on loopback, which takes a RESTConfig or an Authorizer`}},
		"all interfaces":   {inspector.Config{Address: "0.0.0.0:8082"}, []string{"is not on loopback"}},
		"no port":          {inspector.Config{Address: "localhost"}, []string{"missing port"}},
		"a negative limit": {inspector.Config{Objects: -1}, []string{"Objects must not be negative"}},
	} {
		_, err := inspector.New(test.config)
		if !framework.IsInvalidConfig(err) {
			t.Errorf("%s: IsInvalidConfig(%v) is false", name, err)
			continue
		}
		has(t, err.Error(), test.want...)
	}
	for _, address := range []string{"", "127.0.0.1:0", "localhost:1", "[::1]:8082"} {
		if _, err := inspector.New(inspector.Config{Name: "o", Logger: quiet(t), Address: address}); err != nil {
			t.Errorf("address %q: %v", address, err)
		}
	}
}

// request makes a request for a path below /inspector/, with a form if there is one.
func (w *world) request(method, path string, form url.Values) *http.Request {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), method, w.url+"/inspector/"+path, strings.NewReader(form.Encode()))
	if err != nil {
		w.t.Fatal(err)
	}
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return request
}

// do returns the status of the answer.
func (w *world) do(request *http.Request) int {
	w.t.Helper()
	answer, err := w.client.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	answer.Body.Close()
	return answer.StatusCode
}

func withLocalAddr(r *http.Request, local net.Addr) *http.Request {
	if local == nil {
		return r
	}
	return r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local))
}
