package manifest

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/internal/absent"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// carryOutInstallation applies the objects of a service, then takes away what is none of it any more, and writes down what is
// there before and after.
func (c *Carrier) carryOutInstallation(ctx context.Context, cluster carrier.Cluster, service *carrier.Service, todo *installation) error {
	for _, s := range todo.steps[:todo.early] {
		if err := write(ctx, cluster, service, s); err != nil {
			return err
		}
	}
	secret, err := c.begin(ctx, cluster, service, todo)
	if err != nil {
		return err
	}
	rest := todo.steps[todo.early:]
	if todo.adopts {
		for _, s := range rest {
			if err := takeOver(ctx, cluster, service, s); err != nil {
				return err
			}
		}
		return nil
	}
	defined := 0
	for defined < len(rest) && stageOf(rest[defined].object.gvk().GroupKind()) == definitions {
		if err := write(ctx, cluster, service, rest[defined]); err != nil {
			return err
		}
		defined++
	}
	if err := c.established(ctx, cluster, todo); err != nil {
		return err
	}
	for _, s := range rest[defined:] {
		if err := tryLater(ctx, cluster, service, s); err != nil {
			return err
		}
	}
	for _, s := range rest[defined:] {
		if err := write(ctx, cluster, service, s); err != nil {
			return err
		}
	}
	for _, s := range todo.prunes {
		if err := takeAway(ctx, cluster, service, s); err != nil {
			return err
		}
	}
	todo.record.Complete, todo.record.Applied = true, metav1.NewTime(c.config.Clock.Now())
	_, err = c.write(ctx, cluster, service, secret, todo.record, slices.Concat(todo.objects, todo.outdated), todo.packed)
	return err
}

// begin writes down what is going to be there, beside what was. It returns the inventory's Secret, nil if there is none yet.
func (c *Carrier) begin(ctx context.Context, cluster carrier.Cluster, service *carrier.Service, todo *installation) (*corev1.Secret, error) {
	var secret *corev1.Secret
	var manifests []byte
	if todo.have != nil {
		secret, manifests = todo.have.secret, todo.have.secret.Data[manifestsKey]
	}
	if !todo.begin {
		return secret, nil
	}
	return c.write(ctx, cluster, service, secret, todo.record, todo.union(), manifests)
}

// union are the objects that are going to be there, and those that were.
func (i *installation) union() []objectReference {
	objects := slices.Clone(i.objects)
	named := map[carrier.Identity]bool{}
	for n := range objects {
		identity := objects[n].identity()
		objects[n].Sensitive = objects[n].Sensitive || i.sensitive[identity]
		named[identity] = true
	}
	if i.have != nil {
		for _, object := range i.have.objects {
			if !named[object.identity()] {
				objects = append(objects, object)
			}
		}
	}
	return objects
}

// write carries out one step. What has changed since it was planned is a conflict.
func write(ctx context.Context, cluster carrier.Cluster, service *carrier.Service, s step) error {
	object := s.applied()
	if s.replace {
		seen := object.DeepCopy()
		seen.SetUID(s.uid)
		seen.SetResourceVersion(s.version)
		err := carrier.Replace(ctx, cluster.Client(), seen, object, func() error { return apply(ctx, cluster, service, object, s.force) })
		if err != nil {
			return fault("replace", s.manifest, err)
		}
		return nil
	}
	if len(s.managers) > 0 {
		moved, err := carrier.MoveFields(ctx, cluster.Client(), object, s.managers, service.Owner.FieldManager())
		if err != nil {
			return fault("take over", s.manifest, err)
		}
		object.SetResourceVersion(moved)
	}
	if err := apply(ctx, cluster, service, object, s.force); err != nil && (!s.shared || !apierrors.IsConflict(err)) {
		return fault(string(s.action), s.manifest, err)
	}
	return nil
}

// applied is the object of a step as it is applied: as it was planned, or not there.
func (s step) applied() *unstructured.Unstructured {
	object := s.manifest.Object.DeepCopy()
	object.SetResourceVersion(absent.Version)
	if s.action != plan.Create && !s.replace {
		object.SetUID(s.uid)
		object.SetResourceVersion(s.version)
	}
	return object
}

// undressed is the patch that takes the marks of a service from an object, if that is still as it was planned.
func undressed(s step) client.Patch {
	seen := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: s.uid}}
	return carrier.Marking(seen, s.version,
		map[string]any{carrier.OwnerLabel: nil, carrier.ServiceLabel: nil, carrier.ServiceNamespaceLabel: nil}, map[string]any{carrier.OwnerAnnotation: nil})
}

// missingKinds are the kinds of objects that the cluster does not have, and does not get with the objects. Nothing is written while there
// are any.
func missingKinds(cluster carrier.Cluster, manifests []manifest) []schema.GroupVersionKind {
	defined := definitionsIn(manifests)
	var missing []schema.GroupVersionKind
	seen := map[schema.GroupVersionKind]bool{}
	for _, m := range manifests {
		gvk := m.Object.GroupVersionKind()
		if seen[gvk] {
			continue
		}
		seen[gvk] = true
		// What else is wrong is told by the object itself.
		if _, err := defined.Mapping(cluster.RESTMapper(), gvk); meta.IsNoMatchError(err) {
			missing = append(missing, gvk)
		}
	}
	return missing
}

// established waits until the definitions of a service are, and the kinds of its objects are known.
func (c *Carrier) established(ctx context.Context, cluster carrier.Cluster, todo *installation) error {
	changed := slices.ContainsFunc(todo.steps, func(s step) bool {
		return s.manifest.Object != nil && groupKind(s.manifest.Object) == carrier.DefinitionKind
	})
	if !changed && served(cluster, todo.manifests) == nil {
		return nil
	}
	var kinds []schema.GroupVersionKind
	names := map[*unstructured.Unstructured]string{}
	for _, m := range todo.manifests {
		names[m.Object] = m.String()
		kinds = append(kinds, m.Object.GroupVersionKind())
	}
	err := carrier.AwaitKinds(ctx, cluster.Client(), cluster.RESTMapper(), c.config.DefinitionTimeout, definitionsIn(todo.manifests), kinds,
		func(u *unstructured.Unstructured) string { return names[u] })
	if meta.IsNoMatchError(err) {
		return served(cluster, todo.manifests)
	}
	return err
}

// served tells whether the cluster knows the kinds of all objects.
func served(cluster carrier.Cluster, manifests []manifest) error {
	for _, m := range manifests {
		if err := carrier.Unknown(cluster.RESTMapper(), []schema.GroupVersionKind{m.Object.GroupVersionKind()}); err != nil {
			return fault("apply", m, err)
		}
	}
	return nil
}
