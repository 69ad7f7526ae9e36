package target

import (
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// mapperPause is how long what is not known is not asked for again.
const mapperPause = time.Second

var schemaNamespace = corev1.SchemeGroupVersion.WithKind("Namespace")

// mapper is a RESTMapper that forgets all it knows when it is asked for something that it does not know: definitions come,
// go, and come back otherwise.
type mapper struct {
	config     *rest.Config
	httpClient *http.Client

	mu      sync.Mutex
	current meta.RESTMapper
	made    time.Time
}

var _ meta.ResettableRESTMapper = (*mapper)(nil)

func newMapper(config *rest.Config) (*mapper, error) {
	m := &mapper{config: config, httpClient: &http.Client{Transport: config.Transport}}
	return m, m.renew()
}

// renew begins with an empty mapper. It sends nothing.
func (m *mapper) renew() error {
	fresh, err := apiutil.NewDynamicRESTMapper(m.config, m.httpClient)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.current, m.made = fresh, time.Now()
	return nil
}

// Reset implements meta.ResettableRESTMapper.
func (m *mapper) Reset() {
	// What renew can fail of was tried by newMapper.
	_ = m.renew()
}

// now returns the mapper to ask, and whether it has been there for long enough to be worth renewing.
func (m *mapper) now() (current meta.RESTMapper, old bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.current, time.Since(m.made) > mapperPause
}

// ask asks the mapper, and once more a new one for what it does not know.
func ask[T any](m *mapper, question func(meta.RESTMapper) (T, error)) (T, error) {
	current, old := m.now()
	answer, err := question(current)
	if !old || !meta.IsNoMatchError(err) {
		return answer, err
	}
	m.Reset()
	current, _ = m.now()
	return question(current)
}

// KindFor implements meta.RESTMapper.
func (m *mapper) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return ask(m, func(r meta.RESTMapper) (schema.GroupVersionKind, error) { return r.KindFor(resource) })
}

// KindsFor implements meta.RESTMapper.
func (m *mapper) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return ask(m, func(r meta.RESTMapper) ([]schema.GroupVersionKind, error) { return r.KindsFor(resource) })
}

// ResourceFor implements meta.RESTMapper.
func (m *mapper) ResourceFor(input schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return ask(m, func(r meta.RESTMapper) (schema.GroupVersionResource, error) { return r.ResourceFor(input) })
}

// ResourcesFor implements meta.RESTMapper.
func (m *mapper) ResourcesFor(input schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return ask(m, func(r meta.RESTMapper) ([]schema.GroupVersionResource, error) { return r.ResourcesFor(input) })
}

// RESTMapping implements meta.RESTMapper.
func (m *mapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return ask(m, func(r meta.RESTMapper) (*meta.RESTMapping, error) { return r.RESTMapping(gk, versions...) })
}

// RESTMappings implements meta.RESTMapper.
func (m *mapper) RESTMappings(gk schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return ask(m, func(r meta.RESTMapper) ([]*meta.RESTMapping, error) { return r.RESTMappings(gk, versions...) })
}

// ResourceSingularizer implements meta.RESTMapper.
func (m *mapper) ResourceSingularizer(resource string) (string, error) {
	return ask(m, func(r meta.RESTMapper) (string, error) { return r.ResourceSingularizer(resource) })
}
