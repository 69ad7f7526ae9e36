package manifest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/internal/serverside"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// carryOutInstallation applies the objects of a service, then takes away what is none of it any more, and writes down what is
// there before and after.
func (c *Carrier) carryOutInstallation(ctx context.Context, cluster carrier.Cluster, service *carrier.Service, todo *installation) error {
	if err := known(cluster, todo.manifests); err != nil {
		return err
	}
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
	defined := 0
	for defined < len(rest) && rest[defined].action != plan.Delete && stageOf(rest[defined].object.gvk().GroupKind()) == definitions {
		if err := write(ctx, cluster, service, rest[defined]); err != nil {
			return err
		}
		defined++
	}
	if err := c.established(ctx, cluster, todo); err != nil {
		return err
	}
	for _, s := range rest[defined:] {
		if err := write(ctx, cluster, service, s); err != nil {
			return err
		}
	}
	todo.record.Complete, todo.record.Applied = true, metav1.NewTime(c.config.Clock.Now())
	_, err = c.write(ctx, cluster, service, secret, todo.record, todo.objects, todo.packed)
	return err
}

// begin writes down what is going to be there, beside what was. It returns the inventory's Secret, nil if there is none yet.
func (c *Carrier) begin(ctx context.Context, cluster carrier.Cluster, service *carrier.Service, todo *installation) (*corev1.Secret, error) {
	var secret *corev1.Secret
	var manifests []byte
	objects := slices.Clone(todo.objects)
	if todo.have != nil {
		secret, manifests = todo.have.secret, todo.have.secret.Data[manifestsKey]
		for _, object := range todo.have.objects {
			if !slices.ContainsFunc(objects, func(r objectReference) bool { return r.identity() == object.identity() }) {
				objects = append(objects, object)
			}
		}
	}
	if !todo.begin {
		return secret, nil
	}
	return c.write(ctx, cluster, service, secret, todo.record, objects, manifests)
}

// write carries out one step. What has changed since it was planned is a conflict.
func write(ctx context.Context, cluster carrier.Cluster, service *carrier.Service, s step) error {
	if s.manifest.Object == nil {
		return takeAway(ctx, cluster, service, s)
	}
	object := s.manifest.Object.DeepCopy()
	object.SetResourceVersion(serverside.AbsentVersion)
	if s.replace {
		seen := object.DeepCopy()
		seen.SetUID(s.uid)
		seen.SetResourceVersion(s.version)
		err := carrier.Replace(ctx, cluster.Client(), seen, func() error { return apply(ctx, cluster, service, object, s.force) })
		if err != nil {
			return fault("replace", s.manifest, err)
		}
		return nil
	}
	if s.action != plan.Create {
		object.SetUID(s.uid)
		object.SetResourceVersion(s.version)
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

// undressed is the patch that takes the marks of a service from an object, if that is still as it was planned.
func undressed(s step) client.Patch {
	// A map of texts can always be encoded.
	body, _ := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": s.uid, "resourceVersion": s.version,
		"labels": map[string]any{
			carrier.OwnerLabel: nil, carrier.ServiceLabel: nil, carrier.ServiceNamespaceLabel: nil,
		},
		"annotations": map[string]any{carrier.OwnerAnnotation: nil},
	}})
	return client.RawPatch(types.MergePatchType, body)
}

// known tells whether the cluster has the kinds of all objects, or gets them with the objects. Nothing is written before that.
func known(cluster carrier.Cluster, manifests []manifest) error {
	defined := definitionsIn(manifests)
	seen := map[schema.GroupVersionKind]bool{}
	var faults []error
	for _, m := range manifests {
		gvk := m.Object.GroupVersionKind()
		if _, ok := defined[gvk.GroupKind()]; ok || seen[gvk] {
			continue
		}
		seen[gvk] = true
		if _, err := cluster.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
			faults = append(faults, fault("apply", m, err))
		}
	}
	return join(faults)
}

// established waits until the definitions of a service are, and the kinds of its objects are known.
func (c *Carrier) established(ctx context.Context, cluster carrier.Cluster, todo *installation) error {
	isDefinition := func(m manifest) bool { return groupKind(m.Object) == definitionKind }
	changed := slices.ContainsFunc(todo.steps, func(s step) bool { return s.manifest.Object != nil && isDefinition(s.manifest) })
	if !changed && served(cluster, todo.manifests) == nil {
		return nil
	}
	var waits []manifest
	for _, m := range todo.manifests {
		if isDefinition(m) {
			waits = append(waits, m)
		}
	}
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, c.config.DefinitionTimeout, true, func(ctx context.Context) (bool, error) {
		for len(waits) > 0 {
			if err := isEstablished(ctx, cluster, waits[0]); err != nil {
				// A look that the end of the wait has cut off says less than the one before.
				if last == nil || ctx.Err() == nil {
					last = err
				}
				return false, nil //nolint:nilerr // It is looked at again.
			}
			waits = waits[1:]
		}
		if last = served(cluster, todo.manifests); last == nil {
			return true, nil
		}
		if mapper, ok := cluster.RESTMapper().(meta.ResettableRESTMapper); ok {
			mapper.Reset()
		}
		return false, nil
	})
	if err != nil && last != nil {
		return last
	}
	return err
}

func isEstablished(ctx context.Context, cluster carrier.Cluster, m manifest) error {
	have, err := get(ctx, cluster.Client(), referTo(m.Object))
	if err != nil {
		return err
	}
	if have != nil {
		conditions, _ := field(field(have.Object, "status"), "conditions").([]any)
		for _, condition := range conditions {
			switch kind, status := textOf(condition, "type"), textOf(condition, "status"); {
			case kind == "Established" && status == "True":
				return nil
			case kind == "NamesAccepted" && status == "False":
				return fmt.Errorf("%s is not established: %s", m, textOf(condition, "message"))
			}
		}
	}
	return fmt.Errorf("%s is not established yet: its objects wait for it", m)
}

// served tells whether the cluster knows the kinds of all objects.
func served(cluster carrier.Cluster, manifests []manifest) error {
	for _, m := range manifests {
		gvk := m.Object.GroupVersionKind()
		if _, err := cluster.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
			return fault("apply", m, err)
		}
	}
	return nil
}
