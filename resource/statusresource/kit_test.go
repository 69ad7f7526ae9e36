package statusresource_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"testing"

	"github.com/giantswarm/micrologger"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/statusresource"
)

var version = schema.GroupVersion{Group: "status.example.com", Version: "v1"}

// page is the primary of these tests.
type page struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   pageSpec   `json:"spec,omitempty"`
	Status pageStatus `json:"status,omitempty"`
}

type pageSpec struct {
	Text string `json:"text,omitempty"`
	// Fails, Reconciling and Stalled are what the resources of the page say.
	Fails       string `json:"fails,omitempty"`
	Permanently bool   `json:"permanently,omitempty"`
	Reconciling string `json:"reconciling,omitempty"`
	Stalled     string `json:"stalled,omitempty"`
}

type pageStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	URL                string             `json:"url,omitempty"`
	Hosts              []string           `json:"hosts,omitempty"`
}

// DeepCopyObject implements client.Object.
func (p *page) DeepCopyObject() runtime.Object {
	c := *p
	p.DeepCopyInto(&c.ObjectMeta)
	c.Status.Conditions, c.Status.Hosts = slices.Clone(p.Status.Conditions), slices.Clone(p.Status.Hosts)
	return &c
}

type pageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []page `json:"items"`
}

// DeepCopyObject implements client.ObjectList.
func (l *pageList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = nil
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopyObject().(*page))
	}
	return &c
}

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := scheme.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	s.AddKnownTypeWithName(version.WithKind("Page"), &page{})
	s.AddKnownTypeWithName(version.WithKind("PageList"), &pageList{})
	metav1.AddToGroupVersion(s, version)
	return s
}

func object(properties map[string]apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties}
}

// definition is a kind whose status has these fields. Without any it has no status subresource.
func definition(kind, plural string, fields ...string) *apiextensionsv1.CustomResourceDefinition {
	text, flag := apiextensionsv1.JSONSchemaProps{Type: "string"}, apiextensionsv1.JSONSchemaProps{Type: "boolean"}
	known := map[string]apiextensionsv1.JSONSchemaProps{
		"url": text, "observedGeneration": {Type: "integer", Format: "int64"},
		"hosts": {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &text}},
	}
	listType := "map"
	item := object(map[string]apiextensionsv1.JSONSchemaProps{
		"type": text, "status": text, "reason": text, "message": text, "lastTransitionTime": {Type: "string", Format: "date-time"},
		"observedGeneration": {Type: "integer", Format: "int64"},
	})
	item.Required = []string{"type"}
	known["conditions"] = apiextensionsv1.JSONSchemaProps{
		Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &item}, XListType: &listType, XListMapKeys: []string{"type"},
	}
	maps.DeleteFunc(known, func(name string, _ apiextensionsv1.JSONSchemaProps) bool { return !slices.Contains(fields, name) })
	whole := object(map[string]apiextensionsv1.JSONSchemaProps{
		"spec": object(map[string]apiextensionsv1.JSONSchemaProps{
			"text": text, "fails": text, "reconciling": text, "stalled": text, "permanently": flag,
		}),
		"status": object(known),
	})
	d := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + version.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: version.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: plural},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: version.Version, Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &whole},
			}},
		},
	}
	if len(fields) > 0 {
		d.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
	}
	return d
}

var pages = definition("Page", "pages", "conditions", "observedGeneration", "url", "hosts")

type config = statusresource.Config[*page]

// kit is a namespace of the real API server, with a client whose writes are recorded and one for the user's part.
type kit struct {
	t            *testing.T
	client, user client.Client
	faults       *operatortest.Faults
	namespace    string
	server       *operatortest.Instance
	logger       micrologger.Logger
}

func newKit(t *testing.T) *kit {
	t.Helper()
	k := &kit{t: t, server: operatortest.Start(t), faults: operatortest.NewFaults(operatortest.KeepBodies())}
	k.server.InstallCRDs(t, pages)
	k.namespace = k.server.Namespace(t)
	k.user = operatortest.NewClient(t, k.server.RESTConfig(), newScheme(t))
	k.client = operatortest.NewClient(t, k.faults.Wrap(k.server.RESTConfig()), newScheme(t))
	k.logger = quiet(t)
	return k
}

func quiet(t testing.TB) micrologger.Logger {
	t.Helper()
	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	return logger
}

// page creates a primary.
func (k *kit) page(name string, spec pageSpec) *page {
	k.t.Helper()
	p := &page{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: name}, Spec: spec}
	if err := k.user.Create(k.t.Context(), p); err != nil {
		k.t.Fatal(err)
	}
	return p
}

// read returns a page as it is now.
func (k *kit) read(p *page) *page {
	k.t.Helper()
	now := &page{}
	if err := k.user.Get(k.t.Context(), client.ObjectKeyFromObject(p), now); err != nil {
		k.t.Fatal(err)
	}
	return now
}

// edit changes a page as people do, by a merge patch.
func (k *kit) edit(p *page, patch string) *page {
	k.t.Helper()
	now := p.DeepCopyObject().(*page)
	if err := k.user.Patch(k.t.Context(), now, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		k.t.Fatal(err)
	}
	return now
}

// editStatus is edit for the status.
func (k *kit) editStatus(p *page, change func(*pageStatus)) *page {
	k.t.Helper()
	now := k.read(p)
	change(&now.Status)
	if err := k.user.Status().Update(k.t.Context(), now); err != nil {
		k.t.Fatal(err)
	}
	return now
}

// status makes a resource that sets the URL, and says what the spec of a page asks for.
func (k *kit) status(changes ...func(*config)) framework.Resource {
	k.t.Helper()
	return newStatus(k.t, k.client, k.logger, changes...)
}

func newStatus(t testing.TB, c client.Client, logger micrologger.Logger, changes ...func(*config)) framework.Resource {
	t.Helper()
	config := config{Client: c, Logger: logger, Set: say}
	for _, change := range changes {
		change(&config)
	}
	r, err := statusresource.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func say(_ context.Context, p *page, report *statusresource.Report) error {
	p.Status.URL = "https://" + p.Name + "/" + p.Spec.Text
	if p.Spec.Reconciling != "" {
		report.Reconciling("Starting", p.Spec.Reconciling)
	}
	if p.Spec.Stalled != "" {
		report.Stalled("Broken", p.Spec.Stalled)
	}
	return nil
}

// work is a resource that fails as the spec of a page asks for.
type work struct {
	// text is called for the text of each error.
	text func(string) string
}

func (*work) Name() string { return "work" }

func (w *work) EnsureCreated(_ context.Context, obj any) error {
	p := obj.(*page)
	if p.Spec.Fails == "" {
		return nil
	}
	text := p.Spec.Fails
	if w.text != nil {
		text = w.text(text)
	}
	err := fmt.Errorf("it failed: %s", text)
	if p.Spec.Permanently {
		return framework.Permanent(err)
	}
	return err
}

func (w *work) EnsureDeleted(ctx context.Context, obj any) error { return w.EnsureCreated(ctx, obj) }

// as is a context of an operator.
func as(ctx context.Context, operator string, former ...string) context.Context {
	return identity.NewContext(ctx, &identity.Scope{Identity: identity.Identity{Operator: operator, FormerOperators: former, Framework: "pages"}})
}

// update reconciles a page as it is now, and returns it as it is then, with the error.
func (k *kit) update(ctx context.Context, p *page, resources ...framework.Resource) (*page, error) {
	k.t.Helper()
	err := framework.ProcessUpdate(ctx, k.read(p), resources)
	return k.read(p), err
}

// wants compares a status with lines: conditions, and fields.
func (k *kit) wants(p *page, want ...string) {
	k.t.Helper()
	if diff := cmp.Diff(want, lines(p)); diff != "" {
		k.t.Errorf("the status of %s (-want +got):\n%s", p.Name, diff)
	}
}

func lines(p *page) (lines []string) {
	for _, c := range p.Status.Conditions {
		line := fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason)
		if c.Message != "" {
			line += ": " + c.Message
		}
		if c.ObservedGeneration != p.Generation {
			line += fmt.Sprintf(" (of %d)", c.ObservedGeneration)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	if p.Status.ObservedGeneration != p.Generation {
		lines = append(lines, fmt.Sprintf("observed %d of %d", p.Status.ObservedGeneration, p.Generation))
	}
	return lines
}

func loose(kind string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(version.WithKind(kind))
	return u
}
