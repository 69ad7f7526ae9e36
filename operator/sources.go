package operator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
)

// SourceOption narrows the content of a source of NewSource.
type SourceOption func(*informer.KubernetesConfig, *question)

// InNamespaces limits a source to these namespaces, in place of those of the operator. Without
// arguments the source has all namespaces, as a kind without namespaces needs in an operator that
// is limited to some.
func InNamespaces(namespaces ...string) SourceOption {
	namespaces = slices.Compact(slices.Sorted(slices.Values(namespaces)))
	return func(c *informer.KubernetesConfig, q *question) {
		c.Namespaces, q.namespaces = namespaces, cmp.Or(strings.Join(namespaces, ","), "all namespaces")
	}
}

// WithLabels limits a source to the objects that the selector matches.
func WithLabels(selector labels.Selector) SourceOption {
	return func(c *informer.KubernetesConfig, q *question) {
		c.LabelSelector, q.labels = selector, selector.String()
	}
}

// WithFields limits a source to the objects that the selector matches. The API server supports few
// fields.
func WithFields(selector fields.Selector) SourceOption {
	return func(c *informer.KubernetesConfig, q *question) {
		c.FieldSelector, q.fields = selector, selector.String()
	}
}

// WithIndexers gives a source indexes, see informer.KubernetesConfig. With this option, or one of
// those below, each call makes a new source: name it with Named if there is another one of the
// kind.
func WithIndexers(indexers map[string]informer.IndexFunc) SourceOption {
	return func(c *informer.KubernetesConfig, q *question) { c.Indexers, q.own = indexers, true }
}

// WithTransform changes each object before it is stored, see informer.KubernetesConfig.
func WithTransform(transform cache.TransformFunc) SourceOption {
	return func(c *informer.KubernetesConfig, q *question) { c.Transform, q.own = transform, true }
}

// WithResync announces all objects again at this interval, see informer.KubernetesConfig.
func WithResync(period time.Duration) SourceOption {
	return func(c *informer.KubernetesConfig, q *question) { c.Resync, q.own = period, true }
}

// Named names a source. Frameworks are named after their primary source unless they have their own
// names.
func Named(name string) SourceOption {
	return func(_ *informer.KubernetesConfig, q *question) { q.named, q.own = name, true }
}

// NewSource returns a source of the objects of the kind of object, in the namespaces of the
// operator: as whole objects of a Go type, or as unstructured.Unstructured or
// metav1.PartialObjectMetadata if object is one. It is named after the kind, the form and the
// options. Another call with the same arguments returns the same source, which several frameworks
// may use.
func (d *Dependencies) NewSource(object client.Object, options ...SourceOption) (*informer.Kubernetes, error) {
	gvk, err := d.Client.GroupVersionKindFor(object)
	if err != nil {
		return nil, fmt.Errorf("make a source of %T: %w: is it in the scheme?", object, err)
	}
	config := informer.KubernetesConfig{Client: d.Client, Object: object, Namespaces: d.Namespaces, Logger: d.Logger}
	asked := question{gvk: gvk, form: formOf(object)}
	for _, option := range options {
		option(&config, &asked)
	}
	return d.sources.of(asked, func() (*informer.Kubernetes, error) {
		config.Name = cmp.Or(asked.named, asked.name())
		if !asked.own && d.sources.has(config.Name) {
			config.Name += " " + gvk.Version
		}
		return informer.NewKubernetes(config)
	})
}

// sources are the sources made for an operator. Some are run by other components, such as those of
// package target, and not by a framework.
type sources struct {
	mu   sync.Mutex
	made []made
}

// made is a source, with the question that led to it.
type made struct {
	question
	source *informer.Kubernetes
}

// question is a request for a source. Empty fields were not requested.
type question struct {
	gvk                              schema.GroupVersionKind
	form, namespaces, labels, fields string
	// owned is for objects that resources of the operator have made.
	owned bool
	// own is for a source that is not shared, and named is the name that it is given.
	own   bool
	named string
}

// name returns a name that depends only on the question: frameworks are named after their sources,
// and their names must not depend on the rest of the operator, or on the namespaces to which it is
// limited.
func (q question) name() string {
	plural, _ := meta.UnsafeGuessKindToResource(q.gvk)
	name := plural.GroupResource().String()
	for _, part := range []struct{ what, value string }{{"as", q.form}, {"in", q.namespaces}, {"with labels", q.labels}, {"with fields", q.fields}} {
		if part.value != "" {
			name += " " + part.what + " " + part.value
		}
	}
	return name
}

// has reports whether a shared source has that name. It is called while a source is being made.
func (s *sources) has(name string) bool {
	return slices.ContainsFunc(s.made, func(m made) bool { return !m.own && m.source.Name() == name })
}

// of returns the source for the question, and makes it if necessary.
func (s *sources) of(q question, build func() (*informer.Kubernetes, error)) (*informer.Kubernetes, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.made, func(m made) bool { return !q.own && m.question == q }); i >= 0 {
		return s.made[i].source, nil
	}
	source, err := build()
	if err == nil {
		s.made = append(s.made, made{q, source})
	}
	return source, err
}

// all returns all sources.
func (s *sources) all() []made {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.made)
}

// formOf returns the form in which a source holds objects, and "" for Go types.
func formOf(object client.Object) string {
	switch object.(type) {
	case *unstructured.Unstructured:
		return "unstructured"
	case *metav1.PartialObjectMetadata:
		return "metadata"
	}
	return ""
}
