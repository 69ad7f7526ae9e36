package notfound_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer/notfound"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestMain(m *testing.M) {
	operatortest.VerifyTestMain(m)
}

// proxy answers requests for paths that contain a text with 404 and a body of its own.
type proxy struct {
	mu       sync.Mutex
	contains string
	body     string
	kind     string
	next     http.RoundTripper
}

func (p *proxy) answer(contains, contentType, body string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.contains, p.kind, p.body = contains, contentType, body
}

// install returns a client that sends its requests through the proxy.
func (p *proxy) install(t *testing.T, config *rest.Config) client.WithWatch {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		p.next = next
		return p
	})
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return notfound.CheckedWithWatch(operatortest.NewClient(t, config, scheme))
}

func (p *proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.contains == "" || !strings.Contains(r.URL.Path, p.contains) {
		return p.next.RoundTrip(r)
	}
	return &http.Response{
		StatusCode: http.StatusNotFound, Header: http.Header{"Content-Type": []string{p.kind}}, Request: r,
		Body: io.NopCloser(strings.NewReader(p.body)), ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

func status(details string) string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"gone","reason":"NotFound","code":404%s}`, details)
}

// requests are the requests that may prove that something is gone.
func requests(c client.Client, obj func() client.Object) map[string]func(t *testing.T) error {
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`))
	return map[string]func(t *testing.T) error{
		"get":           func(t *testing.T) error { return c.Get(t.Context(), client.ObjectKeyFromObject(obj()), obj()) },
		"delete":        func(t *testing.T) error { return c.Delete(t.Context(), obj()) },
		"patch":         func(t *testing.T) error { return c.Patch(t.Context(), obj(), patch) },
		"update":        func(t *testing.T) error { return c.Update(t.Context(), obj()) },
		"patch status":  func(t *testing.T) error { return c.Status().Patch(t.Context(), obj(), patch) },
		"update status": func(t *testing.T) error { return c.Status().Update(t.Context(), obj()) },
	}
}

func TestOnlyA404OfTheObjectCounts(t *testing.T) {
	instance := operatortest.Start(t)
	namespace := instance.Namespace(t)
	p := &proxy{}
	c := p.install(t, instance.RESTConfig())
	pod := func() client.Object {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop", UID: "uid-1"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}
	}
	for name, test := range map[string]struct {
		kind, body string
		counts     bool
	}{
		"the API server's own":         {"", "", true},
		"a page of a proxy":            {"text/html", "<h1>404</h1>", false},
		"nothing":                      {"text/plain", "", false},
		"a path that is not served":    {"text/plain", "404 page not found\n", false},
		"a status without details":     {"application/json", status(""), false},
		"the object's details":         {"application/json", status(`,"details":{"name":"shop","kind":"pods"}`), true},
		"the object's UID":             {"application/json", status(`,"details":{"name":"shop","kind":"pods","uid":"uid-1"}`), true},
		"another one's UID":            {"application/json", status(`,"details":{"name":"shop","kind":"pods","uid":"uid-2"}`), false},
		"another object":               {"application/json", status(`,"details":{"name":"other","kind":"pods"}`), false},
		"another kind":                 {"application/json", status(`,"details":{"name":"shop","kind":"secrets"}`), false},
		"another group":                {"application/json", status(`,"details":{"name":"shop","kind":"pods","group":"example.com"}`), false},
		"its namespace":                {"application/json", status(fmt.Sprintf(`,"details":{"name":%q,"kind":"namespaces"}`, namespace)), true},
		"another namespace":            {"application/json", status(`,"details":{"name":"default","kind":"namespaces"}`), false},
		"the kind where plural is due": {"application/json", status(`,"details":{"name":"shop","kind":"Pod"}`), true},
	} {
		t.Run(name, func(t *testing.T) {
			p.answer("", "", "")
			if test.kind != "" {
				p.answer("/pods/shop", test.kind, test.body)
			}
			for verb, send := range requests(c, pod) {
				err := send(t)
				if got := apierrors.IsNotFound(err); got != test.counts {
					t.Errorf("%s: IsNotFound is %t, want %t: %v", verb, got, test.counts, err)
				}
				if got := errors.Is(err, notfound.ErrDoubtful); got == test.counts {
					t.Errorf("%s: ErrDoubtful is %t: %v", verb, got, err)
				}
				if !test.counts && !strings.Contains(err.Error(), "Pod "+namespace+"/shop") {
					t.Errorf("%s: the error does not name the object: %v", verb, err)
				}
			}
		})
	}
}

func TestNothingIsGoneOfAKindThatIsNotServed(t *testing.T) {
	instance := operatortest.Start(t)
	p := &proxy{}
	c := p.install(t, instance.RESTConfig())
	const group = "notfound.example.com"
	// The plural can't be guessed.
	definition := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "geese." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "geese", Singular: "goose", Kind: "Goose", ListKind: "GooseList"},
		},
	}
	for _, version := range []string{"v1", "v1alpha1"} {
		definition.Spec.Versions = append(definition.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Served: true, Storage: version == "v1",
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
		})
	}
	instance.InstallCRDs(t, definition)
	goose := func() client.Object {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion(group + "/v1")
		u.SetKind("Goose")
		u.SetName("gerda")
		return u
	}
	list := func() error {
		l := &unstructured.UnstructuredList{}
		l.SetAPIVersion(group + "/v1")
		l.SetKind("GooseList")
		return c.List(t.Context(), l)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "gerda"}, goose()); !apierrors.IsNotFound(err) {
		t.Fatalf("one that does not exist: got error %v, want not found", err)
	}

	p.answer("/apis/"+group, "text/plain", "404 page not found\n")
	for range 3 { // the first one has the mapper forget the group
		if err := c.Delete(t.Context(), goose()); !errors.Is(err, notfound.ErrDoubtful) || apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			t.Errorf("a proxy that hides the whole group: got error %v, want ErrDoubtful", err)
		}
		if err := list(); !errors.Is(err, notfound.ErrDoubtful) || apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			t.Errorf("a list of what a proxy hides: got error %v, want ErrDoubtful", err)
		}
	}
	p.answer("", "", "")
	if err := client.IgnoreNotFound(c.Delete(t.Context(), goose())); err != nil {
		t.Errorf("once the proxy has gone: got error %v, want not found", err)
	}

	// Its objects are stored still, and come back with the version.
	unserved := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/versions/0/served","value":false},{"op":"replace","path":"/spec/versions/1/served","value":false}]`))
	if err := c.Patch(t.Context(), definition.DeepCopy(), unserved); err != nil {
		t.Fatal(err)
	}
	notServed := func(what string) {
		t.Helper()
		operatortest.Eventually(t, "nothing counts as gone "+what, func() error {
			for verb, send := range requests(c, goose) {
				if err := send(t); apierrors.IsNotFound(err) || !meta.IsNoMatchError(err) || !errors.Is(err, notfound.ErrDoubtful) {
					return fmt.Errorf("%s: got error %w, want one that says that the kind is not served", verb, err)
				}
			}
			if err := list(); apierrors.IsNotFound(err) || !meta.IsNoMatchError(err) {
				return fmt.Errorf("list: got error %w, want one that says that the kind is not served", err)
			}
			return nil
		})
	}
	notServed("while no version is served")
	if err := c.Delete(t.Context(), &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: definition.Name}}); err != nil {
		t.Fatal(err)
	}
	notServed("without the definition")
}
