package serviceprovider_test

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/operator/serviceprovider"
)

var servicesGroup = schema.GroupVersion{Group: "services.example.com", Version: "v1"}

// The finalizers of a Postgres.
var (
	workFinalizer   = identity.Identity{Operator: identity.Program(), Framework: "Postgres.services.example.com"}.Finalizer()
	accessFinalizer = identity.Identity{Operator: identity.Program(), Framework: "Postgres.services.example.com-access"}.Finalizer()
)

// Postgres is the API of the tests.
type Postgres struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              PostgresSpec `json:"spec,omitempty"`
	PostgresStatus    `json:"status,omitempty"`
}

type PostgresSpec struct {
	Size int `json:"size,omitempty"`
}

type PostgresStatus struct {
	serviceprovider.CommonStatus `json:",inline"`
	Endpoint                     string `json:"endpoint,omitempty"`
}

func (p *Postgres) DeepCopyObject() runtime.Object {
	c := *p
	metadata := p.ObjectMeta
	c.ObjectMeta = *metadata.DeepCopy()
	p.CommonStatus.DeepCopyInto(&c.CommonStatus)
	return &c
}

type PostgresList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Postgres `json:"items"`
}

func (l *PostgresList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = nil
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopyObject().(*Postgres))
	}
	return &c
}

// ProviderConfig is the config of the tests.
type ProviderConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ProviderConfigSpec `json:"spec,omitempty"`
}

type ProviderConfigSpec struct {
	Version   string          `json:"version,omitempty"`
	Poll      metav1.Duration `json:"poll,omitempty"`
	Secret    string          `json:"secret,omitempty"`
	ConfigMap string          `json:"configMap,omitempty"`
}

func (c *ProviderConfig) PollInterval() time.Duration { return c.Spec.Poll.Duration }

func (c *ProviderConfig) DeepCopyObject() runtime.Object {
	d := *c
	metadata := c.ObjectMeta
	d.ObjectMeta = *metadata.DeepCopy()
	return &d
}

type ProviderConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ProviderConfig `json:"items"`
}

func (l *ProviderConfigList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = nil
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopyObject().(*ProviderConfig))
	}
	return &c
}

func newPostgres(name string, size int) *Postgres {
	return &Postgres{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: PostgresSpec{Size: size}}
}
