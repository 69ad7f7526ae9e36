package machines

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// Kinds of objects that services name.
const (
	secretKind    = "Secret"
	configMapKind = "ConfigMap"
)

// newMetadata returns a source of what tells all objects of a kind, and their states, from each other: nothing of what is in them is
// kept.
func newMetadata(d *operator.Dependencies, kind string) (*informer.Kubernetes, error) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return informer.NewKubernetes(informer.KubernetesConfig{
		Client: d.Client, Object: object, Name: strings.ToLower(kind) + "s of machines", Namespaces: d.Namespaces, Logger: d.Logger,
		Transform: onlyVersion,
	})
}

// readable is the right to read what is named of a kind: what it has is not in the source.
func readable(kind string) framework.Right {
	return framework.Right{Kind: corev1.SchemeGroupVersion.WithKind(kind), Verbs: []string{"get"}}
}

// onlyVersion leaves out annotations too, because kubectl keeps a copy of the whole object there.
func onlyVersion(obj any) (any, error) {
	if o, ok := obj.(*metav1.PartialObjectMetadata); ok {
		o.ObjectMeta = metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion}
	}
	return obj, nil
}

// reference names an object of the namespace of a service, and a key of it or, if that is empty, all of them.
type reference struct{ kind, name, key string }

// referenceOf returns the one that is given.
func referenceOf(secret, configMap *v1alpha1.ObjectReference, secretKey, configMapKey *v1alpha1.KeyReference) reference {
	switch {
	case secret != nil:
		return reference{secretKind, secret.Name, ""}
	case configMap != nil:
		return reference{configMapKind, configMap.Name, ""}
	case secretKey != nil:
		return reference{secretKind, secretKey.Name, secretKey.Key}
	case configMapKey != nil:
		return reference{configMapKind, configMapKey.Name, configMapKey.Key}
	}
	return reference{}
}

func envReference(e *v1alpha1.EnvFrom) reference {
	return referenceOf(e.SecretRef, e.ConfigMapRef, e.SecretKeyRef, e.ConfigMapKeyRef)
}

func configReference(c *v1alpha1.ConfigFrom) reference {
	return referenceOf(nil, nil, c.SecretKeyRef, c.ConfigMapKeyRef)
}

// references returns what a service names.
func references(svc *v1alpha1.MachineService) []reference {
	var all []reference
	for i := range svc.Spec.EnvFrom {
		all = append(all, envReference(&svc.Spec.EnvFrom[i]))
	}
	for i := range svc.Spec.ConfigsFrom {
		all = append(all, configReference(&svc.Spec.ConfigsFrom[i]))
	}
	return all
}

// refers returns the map function from objects of a kind to the services that name them. What logs in to registries concerns all.
func (f *serviceFramework) refers(kind string) informer.MapFunc {
	return func(ctx context.Context, obj any) []informer.Key {
		o := obj.(client.Object)
		return slices.DeleteFunc(f.servicesIn(ctx, o.GetNamespace()), func(key informer.Key) bool {
			if kind == secretKind && o.GetName() == f.registrySecret {
				return false
			}
			svc, exists, err := f.services.Get(key)
			return err != nil || !exists || !slices.ContainsFunc(references(svc.(*v1alpha1.MachineService)), func(r reference) bool {
				return r.kind == kind && r.name == o.GetName()
			})
		})
	}
}

// watchReferences ends the plans of services when what they name becomes another, and returns what makes them be looked at again.
func (f *serviceFramework) watchReferences() []framework.Watch {
	var watches []framework.Watch
	for kind, source := range f.metadata() {
		refer := f.refers(kind)
		source.Subscribe(func(e informer.Event) {
			for _, key := range refer(context.Background(), e.Object) {
				if svc, exists, err := f.services.Get(key); err == nil && exists {
					f.rollouts.changed(key, f.versionOf(svc.(*v1alpha1.MachineService)))
				}
			}
		})
		watches = append(watches, framework.Watch{Source: source, Map: refer})
	}
	return watches
}

// metadata returns the sources of the objects that services name, by kind.
func (s *sources) metadata() map[string]*informer.Kubernetes {
	return map[string]*informer.Kubernetes{secretKind: s.secrets, configMapKind: s.configMaps}
}

// versionOf returns the version of a service that is asked for, as far as is known yet.
func (f *serviceFramework) versionOf(svc *v1alpha1.MachineService) v1alpha1.Version {
	v := v1alpha1.Version{Generation: svc.Generation, Recreate: svc.Annotations[v1alpha1.RecreateAnnotation]}
	all := references(svc)
	if len(all) == 0 {
		return v
	}
	sources, hash := f.metadata(), sha256.New()
	for _, r := range all {
		_, _ = fmt.Fprintf(hash, "%s/%s", r.kind, r.name) // a hash takes everything
		if obj, exists, err := sources[r.kind].Get(informer.Key{Namespace: svc.Namespace, Name: r.name}); err == nil && exists {
			o := obj.(client.Object)
			_, _ = fmt.Fprintf(hash, " %s %s", o.GetUID(), o.GetResourceVersion())
		}
		_, _ = fmt.Fprintln(hash)
	}
	v.References = hex.EncodeToString(hash.Sum(nil)[:8])
	return v
}

// referenceError is all that is wrong with what a service names. It ends when that changes, which is watched.
type referenceError struct{ faults []string }

// Error says what is wrong. There are no values in it.
func (e *referenceError) Error() string { return strings.Join(e.faults, "; ") }

// resolver reads what a service names, each object once.
type resolver struct {
	reader    client.Reader
	namespace string
	read      map[reference]content
	faults    []string
}

// content is what is in an object. What is not text is in binary if the object tells it apart.
type content struct {
	exists       bool
	data, binary map[string][]byte
}

// resolve returns the specification of a service with the values that are in Secrets and ConfigMaps. What is wrong with these is a
// referenceError, and permanent: its end is watched for.
func (f *serviceFramework) resolve(ctx context.Context, svc *v1alpha1.MachineService) (api.ServiceSpec, error) {
	spec := svc.Spec.ServiceSpec
	spec.Name = svc.Name
	if len(svc.Spec.EnvFrom) == 0 && len(svc.Spec.ConfigsFrom) == 0 {
		return spec, nil
	}
	spec = spec.Clone()
	r := &resolver{reader: f.d.Client, namespace: svc.Namespace, read: map[reference]content{}}
	env, err := r.env(ctx, svc.Spec.EnvFrom)
	if err != nil {
		return spec, err
	}
	for name, value := range spec.Container.SecretEnv {
		env[name] = value
	}
	for name := range spec.Container.Env {
		if _, both := spec.Container.SecretEnv[name]; !both {
			delete(env, name)
		}
	}
	spec.Container.SecretEnv = env
	for i := range svc.Spec.ConfigsFrom {
		from := &svc.Spec.ConfigsFrom[i]
		text, err := r.value(ctx, configReference(from), fmt.Sprintf("configsFrom[%d]", i), true)
		if err != nil {
			return spec, err
		}
		spec.Configs = append(spec.Configs, api.ConfigSpec{Name: from.Name, Content: api.Hidden(text)})
	}
	if len(r.faults) > 0 {
		return spec, framework.Permanent(&referenceError{r.faults})
	}
	return spec, nil
}

// shellName is what shells take, and dots and hyphens. Keys that are taken all together were not meant as names one by one.
var shellName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

// env returns the variables. The error is about reading; all else is among the faults.
func (r *resolver) env(ctx context.Context, from []v1alpha1.EnvFrom) (map[string]api.Hidden, error) {
	env := map[string]api.Hidden{}
	for i := range from {
		e, at := &from[i], fmt.Sprintf("envFrom[%d]", i)
		ref := envReference(e)
		if ref.key != "" {
			text, err := r.value(ctx, ref, at, false)
			if err != nil {
				return nil, err
			}
			env[e.Name] = r.variable(at, ref, text)
			continue
		}
		c, err := r.object(ctx, ref, at)
		if err != nil {
			return nil, err
		}
		for _, key := range slices.Sorted(maps.Keys(c.data)) {
			ref.key = key
			if !shellName.MatchString(e.Prefix + key) {
				r.fault("%s: key %s of %s %s makes %s, which is not a name of an environment variable; add a prefix, or name keys one by one",
					at, key, ref.kind, ref.name, e.Prefix+key)
			}
			env[e.Prefix+key] = r.variable(at, ref, c.data[key])
		}
	}
	return env, nil
}

// variable returns the value of a variable, if it can be one.
func (r *resolver) variable(at string, ref reference, text []byte) api.Hidden {
	// It would not arrive as it is.
	if !utf8.Valid(text) || slices.Contains(text, 0) {
		r.fault("%s: key %s of %s %s is no text, which environment variables are; use configsFrom", at, ref.key, ref.kind, ref.name)
	}
	return api.Hidden(text)
}

// value returns what a key has.
func (r *resolver) value(ctx context.Context, ref reference, at string, binary bool) ([]byte, error) {
	c, err := r.object(ctx, ref, at)
	if err != nil || !c.exists {
		return nil, err
	}
	text, exists := c.data[ref.key]
	if !exists && binary {
		text, exists = c.binary[ref.key]
	}
	if !exists {
		r.fault("%s: %s %s has no key %s", at, ref.kind, ref.name, ref.key)
	}
	return text, nil
}

// object returns what an object has.
func (r *resolver) object(ctx context.Context, ref reference, at string) (content, error) {
	ref.key = ""
	c, known := r.read[ref]
	if !known {
		var err error
		if c, err = r.get(ctx, ref); err != nil {
			return c, fmt.Errorf("%s: read %s %s: %w", at, ref.kind, ref.name, err)
		}
		r.read[ref] = c
	}
	if !c.exists {
		r.fault("%s: there is no %s %s in namespace %s", at, ref.kind, ref.name, r.namespace)
	}
	return c, nil
}

func (r *resolver) get(ctx context.Context, ref reference) (content, error) {
	key := client.ObjectKey{Namespace: r.namespace, Name: ref.name}
	var c content
	var err error
	switch ref.kind {
	case secretKind:
		secret := &corev1.Secret{}
		err = r.reader.Get(ctx, key, secret)
		c.data = secret.Data
	default:
		configMap := &corev1.ConfigMap{}
		err = r.reader.Get(ctx, key, configMap)
		c.data, c.binary = make(map[string][]byte, len(configMap.Data)), configMap.BinaryData
		for k, v := range configMap.Data {
			c.data[k] = []byte(v)
		}
	}
	c.exists = err == nil
	if apierrors.IsNotFound(err) {
		err = nil
	}
	return c, err
}

func (r *resolver) fault(format string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}
