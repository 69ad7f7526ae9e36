package sveltos

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/internal/absent"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/sveltos/v1beta1"
)

// write is the payload of an operation: exactly one of its fields is set.
type write struct {
	// apply is what is applied, with the UID and the resource version of what it was compared with.
	apply *unstructured.Unstructured
	// remove is what is deleted.
	remove client.Object
	// adopt is the profile of a former name that is taken over.
	adopt client.Object
	// pause is the profile that Sveltos is to leave alone, and resume the one that it is to go on with.
	pause, resume client.Object
}

// operations works out what has to be written.
func (m *Manager) operations(ctx context.Context, s *situation, work *statemanager.Work) error {
	if s.profile != nil && paused(s.profile) {
		// Sveltos leaves a profile that is paused alone, also when that is deleted. All else comes in the next reconciliation: this write
		// makes another version of the profile.
		work.Operations = append(work.Operations, pauseOperation(s.profile, false))
		return nil
	}
	deleting := s.set.ServiceSet.DeletionTimestamp != nil
	switch {
	case s.profile != nil && !s.profile.GetDeletionTimestamp().IsZero():
		work.Operations = append(work.Operations, statemanager.Operation{Notes: []string{
			fmt.Sprintf("%s %s is being deleted by Sveltos", kindOf(s.profile), s.profile.GetName()),
		}})
		return nil
	case s.profile == nil && len(s.wants) == 0:
		return nil
	case deleting && len(s.wants) == 0:
		work.Operations = append(work.Operations, statemanager.Operation{
			Changes: []plan.Change{{Action: plan.Delete, Object: planObject(s.profile)}}, Payload: write{remove: s.profile},
		})
		return nil
	}
	keeper, _ := m.keepers(ctx)
	if owner := ownerOf(keeper, s.set.ServiceSet); s.profile != nil && s.profile.GetLabels()[carrier.OwnerLabel] != owner.ID() {
		work.Operations = append(work.Operations, adoptOperation(s.profile, owner))
		return nil
	}
	if !deleting {
		if err := m.clusterOperation(ctx, s, work); err != nil {
			return err
		}
	}
	return m.profileOperation(ctx, s, work)
}

// clusterOperation makes the SveltosCluster when there is none, and has the one that was made for the ClusterDeployment name the kubeconfig
// that this one names. Another one is left as it is: a person may have made it.
func (m *Manager) clusterOperation(ctx context.Context, s *situation, work *statemanager.Work) error {
	cluster, err := m.cluster(s.set)
	if err != nil || cluster == nil {
		return err
	}
	live := &v1beta1.SveltosCluster{}
	found, err := m.read(ctx, client.ObjectKeyFromObject(cluster), live)
	if err != nil || found && (live.Spec == cluster.Spec || !madeFor(live, s.set.Cluster)) {
		return err
	}
	cluster.SetGroupVersionKind(v1beta1.LibGroupVersion.WithKind(v1beta1.SveltosClusterKind))
	var before client.Object
	if found {
		before = live
	}
	u, err := applied(cluster, before)
	if err != nil {
		return err
	}
	changes := plan.Describe(plan.Create, u.DeepCopy(), nil)
	if found {
		changes = []plan.Change{{Action: plan.Update, Object: planObject(live), Fields: kubeconfigChanges(live.Spec, cluster.Spec)}}
	}
	work.Operations = append(work.Operations, statemanager.Operation{Changes: changes, Payload: write{apply: u}})
	return nil
}

// madeFor tells whether a SveltosCluster was made for a ClusterDeployment.
func madeFor(cluster *v1beta1.SveltosCluster, cd *v1alpha1.ClusterDeployment) bool {
	return cluster.Labels[v1alpha1.ClusterLabel] == cd.Name &&
		slices.ContainsFunc(cluster.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.UID == cd.UID })
}

// kubeconfigChanges are the fields that another kubeconfig changes.
func kubeconfigChanges(before, after v1beta1.SveltosClusterSpec) (fields []plan.FieldChange) {
	for _, field := range []plan.FieldChange{
		{Path: "spec.kubeconfigName", Old: before.KubeconfigName, New: after.KubeconfigName},
		{Path: "spec.kubeconfigKeyName", Old: before.KubeconfigKeyName, New: after.KubeconfigKeyName},
	} {
		if field.Old != field.New {
			fields = append(fields, field)
		}
	}
	return fields
}

// profileOperation creates the profile, or updates it where a dry run says that it would change.
func (m *Manager) profileOperation(ctx context.Context, s *situation, work *statemanager.Work) error {
	desired, err := m.desired(ctx, s)
	if err != nil {
		return err
	}
	u, err := applied(desired, s.profile)
	if err != nil {
		return err
	}
	operation := statemanager.Operation{Notes: s.notes, Payload: write{apply: u}}
	if s.profile == nil {
		operation.Changes = plan.Describe(plan.Create, u.DeepCopy(), nil)
	} else {
		result := u.DeepCopy()
		keeper, _ := m.keepers(ctx)
		err := m.config.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(result),
			client.FieldOwner(keeper.FieldManager()), client.ForceOwnership, client.DryRunAll)
		if err != nil {
			return fmt.Errorf("compare %s %s with what it should be: %w", kindOf(s.profile), s.profile.GetName(), err)
		}
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(u.GroupVersionKind())
		if err := m.config.Client.Get(ctx, client.ObjectKeyFromObject(s.profile), live); err != nil {
			return fmt.Errorf("read %s %s: %w", kindOf(s.profile), s.profile.GetName(), err)
		}
		operation.Changes = slices.DeleteFunc(plan.Describe(plan.Update, result, live), func(c plan.Change) bool { return len(c.Fields) == 0 })
	}
	work.Operations = append(work.Operations, operation)
	return nil
}

// applied is what is applied for an object, in place of the one that is there, or none.
func applied(desired, live client.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(desired)
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", kindOf(desired), desired.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	delete(u.Object, "status")
	u.SetResourceVersion(absent.Version)
	if live != nil {
		u.SetUID(live.GetUID())
		u.SetResourceVersion(live.GetResourceVersion())
	}
	return u, nil
}

// adoptOperation takes a profile over from a former name, as it is: all else comes in the next reconciliation.
func adoptOperation(profile client.Object, owner carrier.Owner) statemanager.Operation {
	change := plan.Change{
		Action: plan.Update, Object: planObject(profile), Description: "taken over from " + carrier.Whose(profile),
		Fields: []plan.FieldChange{{
			Path: "metadata.labels" + plan.Segment(carrier.OwnerLabel), Old: profile.GetLabels()[carrier.OwnerLabel], New: owner.ID(),
		}},
	}
	return statemanager.Operation{Changes: []plan.Change{change}, Payload: write{adopt: profile}}
}

// pauseOperation makes Sveltos leave a profile alone, or go on with it.
func pauseOperation(profile client.Object, pause bool) statemanager.Operation {
	field := plan.FieldChange{Path: "metadata.annotations" + plan.Segment(v1beta1.PausedAnnotation), Old: "true"}
	change := plan.Change{Action: plan.Update, Object: planObject(profile), Description: "Sveltos goes on"}
	payload := write{resume: profile}
	if pause {
		// What else the annotation may say does not pause.
		if was, ok := profile.GetAnnotations()[v1beta1.PausedAnnotation]; ok {
			field.Old = was
		} else {
			field.Old = nil
		}
		field.New = "true"
		change.Description = "Sveltos leaves everything as it is"
		payload = write{pause: profile}
	}
	change.Fields = []plan.FieldChange{field}
	return statemanager.Operation{Changes: []plan.Change{change}, Payload: payload}
}

// CarryOut implements statemanager.StateManager. An object that has changed since the Compute is a conflict, for which
// apierrors.IsConflict holds.
func (m *Manager) CarryOut(ctx context.Context, set *statemanager.Set, operation *statemanager.Operation) error {
	w, ok := operation.Payload.(write)
	if !ok {
		return fmt.Errorf("the operation on %q is not one of this state manager's", operation.Service)
	}
	keeper, former := m.keepers(ctx)
	switch {
	case w.apply != nil:
		err := m.config.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(w.apply.DeepCopy()),
			client.FieldOwner(keeper.FieldManager()), client.ForceOwnership)
		if err != nil {
			return fmt.Errorf("write %s %s: %w", w.apply.GetKind(), w.apply.GetName(), err)
		}
		return nil
	case w.remove != nil:
		uid, version := w.remove.GetUID(), w.remove.GetResourceVersion()
		err := m.config.Client.Delete(ctx, w.remove, client.Preconditions{UID: &uid, ResourceVersion: &version})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %s %s: %w", kindOf(w.remove), w.remove.GetName(), err)
		}
		return nil
	case w.adopt != nil:
		return m.adopt(ctx, w.adopt, ownerOf(keeper, set.ServiceSet), former)
	case w.pause != nil:
		return m.setPaused(ctx, w.pause, "true")
	}
	return m.setPaused(ctx, w.resume, nil)
}

// adopt gives a profile its owner's marks, and the fields of the former field managers before, unless it has changed since.
func (m *Manager) adopt(ctx context.Context, profile client.Object, owner carrier.Owner, former []carrier.Keeper) error {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(profile.GetObjectKind().GroupVersionKind())
	u.SetNamespace(profile.GetNamespace())
	u.SetName(profile.GetName())
	u.SetResourceVersion(profile.GetResourceVersion())
	version, err := carrier.MoveFields(ctx, m.config.Client, u, carrier.Managers(former), owner.FieldManager())
	if err == nil {
		marking := carrier.Marking(profile, version, map[string]string{carrier.OwnerLabel: owner.ID()},
			map[string]string{carrier.OwnerAnnotation: owner.String()})
		err = m.config.Client.Patch(ctx, u, marking, client.FieldOwner(owner.FieldManager()))
	}
	if err != nil {
		return fmt.Errorf("take over %s %s: %w", kindOf(profile), profile.GetName(), err)
	}
	return nil
}

// setPaused writes the annotation, unless the profile has changed since. Nil takes it away.
func (m *Manager) setPaused(ctx context.Context, profile client.Object, value any) error {
	pausing := identity.From(ctx).Mark(m.Name() + "-pause")
	marking := carrier.Marking(profile, profile.GetResourceVersion(), nil, map[string]any{v1beta1.PausedAnnotation: value})
	err := m.config.Client.Patch(ctx, profile.DeepCopyObject().(client.Object), marking, client.FieldOwner(pausing.FieldManager()))
	if err != nil {
		return fmt.Errorf("pause or resume %s %s: %w", kindOf(profile), profile.GetName(), err)
	}
	return nil
}

// planObject names an object in a plan.
func planObject(obj client.Object) plan.Object {
	gvk := obj.GetObjectKind().GroupVersionKind()
	return plan.Object{
		APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName(),
		UID: obj.GetUID(), Version: obj.GetResourceVersion(),
	}
}
