package crdclient_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/giantswarm/micrologger"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/crdclient"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestMain(m *testing.M) {
	operatortest.VerifyTestMain(m)
}

// definition returns a definition of a kind in a group of the test's own, with one text field per
// name.
func definition(t *testing.T, fields ...string) *apiextensionsv1.CustomResourceDefinition {
	group := strings.ToLower(t.Name()) + ".example.com"
	properties := map[string]apiextensionsv1.JSONSchemaProps{}
	for _, field := range fields {
		properties[field] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "shelves." + group, Labels: map[string]string{"ours": "yes"}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group,
			Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "shelves", Singular: "shelf", Kind: "Shelf", ListKind: "ShelfList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties},
				},
			}},
		},
	}
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	return s
}

// newClients returns a client under test whose first writes are lost, a client to look with, and
// the log.
func newClients(t *testing.T, losses int32) (*crdclient.Client, client.Client, *bytes.Buffer) {
	t.Helper()
	instance := operatortest.Start(t)
	bare := operatortest.NewClient(t, withLosses(instance.RESTConfig(), losses), runtime.NewScheme())
	log := &bytes.Buffer{}
	logger, err := micrologger.New(micrologger.Config{IOWriter: log})
	if err != nil {
		t.Fatal(err)
	}
	crds, err := crdclient.New(crdclient.Config{Client: bare, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	c := operatortest.NewClient(t, instance.RESTConfig(), scheme(t))
	return crds, c, log
}

// quick is a backoff that does not give up.
func quick() backoff.BackOff { return backoff.NewConstantBackOff(10 * time.Millisecond) }

func ensure(t *testing.T, crds *crdclient.Client, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := crds.EnsureCreated(ctx, crd, quick()); err != nil {
		t.Fatal(err)
	}
}

func live(t *testing.T, c client.Client, crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	got := &apiextensionsv1.CustomResourceDefinition{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(crd), got); err != nil {
		t.Fatal(err)
	}
	return got
}

// cleanUp deletes the definition at the end, so that tests can run again on the same server.
func cleanUp(t *testing.T, c client.Client, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(c.Delete(context.WithoutCancel(t.Context()), crd)); err != nil {
			t.Error(err)
		}
	})
}

func TestDefinitionIsServedWhenItIsEnsured(t *testing.T) {
	crds, c, _ := newClients(t, 0)
	crd := definition(t, "color")
	cleanUp(t, c, crd)
	given := crd.DeepCopy()
	ensure(t, crds, crd)
	if diff := cmp.Diff(given, crd); diff != "" {
		t.Errorf("the given definition was changed (-before +after):\n%s", diff)
	}
	for _, condition := range live(t, c, crd).Status.Conditions {
		if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
			return
		}
	}
	t.Error("not established")
}

func TestDefinitionIsUpdatedInPlaceAndKeepsItsObjects(t *testing.T) {
	crds, c, _ := newClients(t, 0)
	crd := definition(t, "color", "size")
	cleanUp(t, c, crd)
	ensure(t, crds, crd)
	shelf := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": crd.Spec.Group + "/v1", "kind": "Shelf",
		"metadata": map[string]any{"name": "one"}, "color": "red",
	}}
	operatortest.Eventually(t, "the kind is found, and an object of it made", func() error { return c.Create(t.Context(), shelf) })
	uid := live(t, c, crd).UID

	changed := definition(t, "color", "material")
	ensure(t, crds, changed)
	got := live(t, c, crd)
	if got.UID != uid {
		t.Error("the definition was replaced by another")
	}
	properties := got.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties
	if _, ok := properties["material"]; !ok {
		t.Error("the new field is missing")
	}
	if _, ok := properties["size"]; ok {
		t.Error("the dropped field is still there")
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(shelf), shelf); err != nil {
		t.Errorf("the object is lost: %v", err)
	}
}

func TestDefinitionKeepsWhatOthersHaveSet(t *testing.T) {
	crds, c, _ := newClients(t, 0)
	crd := definition(t, "color")
	cleanUp(t, c, crd)
	ensure(t, crds, crd)

	other := live(t, c, crd)
	before := other.DeepCopy()
	other.Labels["theirs"] = "yes"
	other.Annotations = map[string]string{"theirs": "yes"}
	other.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: new("https://127.0.0.1/convert")},
			ConversionReviewVersions: []string{"v1"},
		},
	}
	if err := c.Patch(t.Context(), other, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	ensure(t, crds, crd)
	got := live(t, c, crd)
	if diff := cmp.Diff(other.Labels, got.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(other.Annotations, got.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(other.Spec, got.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if other.ResourceVersion != got.ResourceVersion {
		t.Error("a definition that is as it should be was written")
	}
}

func TestTakenNamesAreAPermanentError(t *testing.T) {
	crds, c, _ := newClients(t, 0)
	first := definition(t, "color")
	cleanUp(t, c, first)
	ensure(t, crds, first)
	second := definition(t, "color")
	second.Name = "racks." + second.Spec.Group
	second.Spec.Names.Plural = "racks"
	cleanUp(t, c, second)

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := crds.EnsureCreated(ctx, second, quick())
	if !errors.Is(err, crdclient.ErrNamesConflict) {
		t.Fatalf("err = %v, want ErrNamesConflict", err)
	}
	var permanent *backoff.PermanentError
	if !errors.As(err, &permanent) {
		t.Errorf("%T is not permanent", err)
	}
	if !strings.Contains(err.Error(), second.Name) || !strings.Contains(err.Error(), "already in use") {
		t.Errorf("the error does not tell: %v", err)
	}
}

func TestDefinitionTheServerRefusesIsAPermanentError(t *testing.T) {
	crds, _, _ := newClients(t, 0)
	crd := definition(t, "color")
	crd.Spec.Versions[0].Storage = false
	err := crds.EnsureCreated(t.Context(), crd, quick())
	var permanent *backoff.PermanentError
	if !errors.As(err, &permanent) || !strings.Contains(err.Error(), "storage") {
		t.Errorf("err = %v, want a permanent one that tells about storage", err)
	}
}

// flaky loses the first requests that write.
type flaky struct {
	next http.RoundTripper
	left atomic.Int32
}

func (f *flaky) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && f.left.Add(-1) >= 0 {
		return nil, errors.New("connection lost")
	}
	return f.next.RoundTrip(r)
}

func withLosses(config *rest.Config, losses int32) *rest.Config {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		f := &flaky{next: next}
		f.left.Store(losses)
		return f
	})
	return config
}

func TestPassingFailureIsTriedAgainWithTheBackoff(t *testing.T) {
	crds, c, log := newClients(t, 3)
	crd := definition(t, "color")
	cleanUp(t, c, crd)
	ensure(t, crds, crd)
	if got := strings.Count(log.String(), "is not ensured, next attempt"); got != 3 {
		t.Errorf("%d failures logged, want 3:\n%s", got, log)
	}
}

func TestBackoffAndContextEndTheAttempts(t *testing.T) {
	crds, _, _ := newClients(t, 1<<30)
	crd := definition(t, "color")
	err := crds.EnsureCreated(t.Context(), crd, backoff.WithMaxRetries(quick(), 2))
	if err == nil || !strings.Contains(err.Error(), "connection lost") || !strings.Contains(err.Error(), crd.Name) {
		t.Errorf("err = %v, want the last failure and the name", err)
	}
	// There is time for a failure on a busy machine.
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	err = crds.EnsureCreated(ctx, crd, quick())
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "connection lost") {
		t.Errorf("err = %v, want the context's and the last failure", err)
	}
}

func TestBadInputNamesTheField(t *testing.T) {
	_, err := crdclient.New(crdclient.Config{})
	if !errors.Is(err, informer.ErrInvalidConfig) || !strings.Contains(err.Error(), "Client must be set") || !strings.Contains(err.Error(), "Logger must be set") {
		t.Errorf("err = %v", err)
	}
	crds, _, _ := newClients(t, 0)
	for _, crd := range []*apiextensionsv1.CustomResourceDefinition{nil, {}} {
		if err := crds.EnsureCreated(t.Context(), crd, nil); !errors.Is(err, informer.ErrInvalidConfig) {
			t.Errorf("EnsureCreated(%v) = %v", crd, err)
		}
	}
}

func TestADefinitionThatIsNotServedYetIsAnErrorOneCanAskFor(t *testing.T) {
	crds, c, _ := newClients(t, 0)
	crd := definition(t, "color")
	cleanUp(t, c, crd)
	err := crds.EnsureCreated(t.Context(), crd, &backoff.StopBackOff{}) // it is never served at the first look
	if !crdclient.IsNotEstablished(err) || !errors.Is(err, crdclient.ErrNotEstablished) || crdclient.IsNamesConflict(err) {
		t.Errorf("got error %v, want ErrNotEstablished", err)
	}
}
