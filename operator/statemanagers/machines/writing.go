package machines

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/internal/absent"
	machinesv1alpha1 "github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// write is the payload of an operation: exactly one of apply, remove, pause and resume is set.
type write struct {
	// apply is what is applied in place of have, or of none, with the UID and the resource version of it.
	apply *unstructured.Unstructured
	have  *placed
	// renamed tells that have was made under a former name, and is taken over as it is.
	renamed bool
	// remove is what is deleted, pause what the operator of MachineServices is to leave alone, and resume what it is to go on with.
	remove, pause, resume *placed

	changes []plan.Change
	notes   []string
	// want is what apply is made from.
	want *wanted
}

// compare works out what has to be written for a service. What the API server refuses, it refuses here.
func (m *Manager) compare(ctx context.Context, set *statemanager.Set, want *wanted, have *placed) (*write, error) {
	if have != nil && have.GetDeletionTimestamp() != nil {
		return &write{}, nil
	}
	todo := &write{want: want, have: have}
	todo.renamed = have != nil && have.isRenamed(set.ServiceSet)
	desired := want
	if todo.renamed {
		// It is taken over as it is: what else has to change comes afterwards.
		desired = want.like(have)
	} else if have != nil && set.Config.SyncMode == v1alpha1.SyncModeOneTime && have.fingerprint() != want.fingerprint {
		todo.notes = []string{fmt.Sprintf("service %s stays as it was put there, because the sync mode is OneTime", want.Key)}
		if have.isOf(set.ServiceSet) {
			return todo, nil
		}
		// It changes hands as it is.
		desired = want.like(have)
	}
	u := desired.object(set.ServiceSet.Namespace, have)
	if have != nil && contains(have.Object, u.Object) {
		return todo, nil
	}
	todo.apply = u.DeepCopy()
	if err := m.apply(ctx, u, have, client.DryRunAll); err != nil {
		return nil, want.Err(fmt.Errorf("compare MachineService %s/%s with what it should be: %w", u.GetNamespace(), u.GetName(), err))
	}
	if have == nil {
		todo.changes = plan.Describe(plan.Create, todo.apply.DeepCopy(), nil)
	} else {
		want.Conceal(secretsIn(have.Object["spec"]))
		todo.changes = slices.DeleteFunc(plan.Describe(plan.Update, u, have.Unstructured), func(c plan.Change) bool {
			return len(c.Fields) == 0
		})
		for i := range todo.changes {
			if todo.renamed {
				todo.changes[i].Description = "taken over from " + carrier.Whose(have)
			}
		}
	}
	todo.changes = want.shown(todo.changes, have)
	return todo, nil
}

// object is what is applied for a service, in place of what is there.
func (w *wanted) object(namespace string, have *placed) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": runtime.DeepCopyJSONValue(w.spec)}}
	u.SetGroupVersionKind(machinesv1alpha1.GroupVersion.WithKind(machinesv1alpha1.MachineServiceKind))
	u.SetNamespace(namespace)
	u.SetName(w.Key.Name)
	u.SetLabels(w.labels)
	u.SetAnnotations(w.annotations)
	u.SetResourceVersion(absent.Version)
	if have != nil {
		u.SetUID(have.GetUID())
		u.SetResourceVersion(have.GetResourceVersion())
	}
	return u
}

// like is what a service is that changes hands as it is.
func (w *wanted) like(have *placed) *wanted {
	spec, _ := have.Object["spec"].(map[string]any)
	as := *w
	as.spec, as.annotations = spec, maps.Clone(w.annotations)
	for _, name := range []string{TemplateAnnotation, VersionAnnotation, FingerprintAnnotation, ConfidentialAnnotation} {
		if as.annotations[name] = have.GetAnnotations()[name]; as.annotations[name] == "" {
			delete(as.annotations, name)
		}
	}
	return &as
}

// contains tells whether a JSON value has all that is asked for, other than what tells one state of an object from another.
func contains(have, asked any) bool {
	fields, isMap := asked.(map[string]any)
	if !isMap {
		return equality.Semantic.DeepEqual(have, asked)
	}
	in, isMap := have.(map[string]any)
	if !isMap {
		return false
	}
	for name, value := range fields {
		if !contains(in[name], value) {
			return false
		}
	}
	return true
}

// shown returns changes without values that must not be shown: what comes or came from Secrets, secretEnv, and the contents of configs.
func (w *wanted) shown(changes []plan.Change, have *placed) []plan.Change {
	hidden := slices.Concat(w.confidential(), have.confidential(), []string{
		"spec.container.secretEnv", "metadata.annotations" + plan.Segment(corev1.LastAppliedConfigAnnotation),
	})
	for i := range changes {
		plan.Hide(changes[i].Fields, func(path string) bool { return !plan.Below(path, hidden...) && !content.MatchString(path) })
	}
	return w.Changes(changes)
}

// content is where the contents of configs are in a plan.
var content = regexp.MustCompile(`^spec\.configs(\[.*\](\.content)?)?$`)

// removal is the operation that takes a service away.
func removal(key client.ObjectKey, p *placed) statemanager.Operation {
	return statemanager.Operation{
		Service: key, Changes: []plan.Change{{Action: plan.Delete, Object: planObject(p)}}, Payload: &write{remove: p},
	}
}

// pauseOperation makes the operator of MachineServices leave one alone, or go on with it.
func pauseOperation(key client.ObjectKey, p *placed, pause bool) statemanager.Operation {
	change := plan.Change{Action: plan.Update, Object: planObject(p), Description: "its operator goes on"}
	todo := &write{resume: p}
	if pause {
		change.Description, todo = "its operator leaves it as it is", &write{pause: p}
	}
	for _, name := range []string{framework.PausedAnnotation, SuspendedAnnotation} {
		field := plan.FieldChange{Path: "metadata.annotations" + plan.Segment(name)}
		if was, ok := p.GetAnnotations()[name]; ok {
			field.Old = was
		}
		if pause {
			field.New = "true"
		}
		if field.Old != field.New {
			change.Fields = append(change.Fields, field)
		}
	}
	return statemanager.Operation{Service: key, Changes: []plan.Change{change}, Payload: todo}
}

// CarryOut implements statemanager.StateManager. An object that has changed since the Compute, in more than its status, is a
// conflict, for which apierrors.IsConflict holds.
func (m *Manager) CarryOut(ctx context.Context, set *statemanager.Set, operation *statemanager.Operation) error {
	todo, ok := operation.Payload.(*write)
	if !ok {
		return framework.Permanent(fmt.Errorf("the operation of service %s is none of the state manager %s", operation.Service, m.Name()))
	}
	switch {
	case todo.remove != nil:
		uid := todo.remove.GetUID()
		err := m.whileSame(ctx, todo.remove, func(version string) error {
			return m.config.Client.Delete(ctx, todo.remove.DeepCopy(), client.Preconditions{UID: &uid, ResourceVersion: &version})
		})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete MachineService %s/%s: %w", todo.remove.GetNamespace(), todo.remove.GetName(), err)
		}
		return nil
	case todo.pause != nil:
		return m.setPaused(ctx, todo.pause, "true")
	case todo.resume != nil:
		return m.setPaused(ctx, todo.resume, nil)
	case todo.apply == nil:
		return nil
	}
	err := m.takeOver(ctx, todo)
	if err == nil {
		err = m.apply(ctx, todo.apply.DeepCopy(), todo.have)
	}
	if err != nil {
		err = todo.want.Err(fmt.Errorf("write MachineService %s/%s: %w", todo.apply.GetNamespace(), todo.apply.GetName(), err))
	}
	if ctx.Err() == nil && !apierrors.IsConflict(err) {
		m.note(ctx, client.ObjectKeyFromObject(set.ServiceSet), operation.Service, todo.want.fingerprint, err)
	}
	return err
}

// takeOver moves the fields that were applied under former names.
func (m *Manager) takeOver(ctx context.Context, todo *write) error {
	if !todo.renamed {
		return nil
	}
	return m.whileSame(ctx, todo.have, func(version string) error {
		u := todo.apply.DeepCopy()
		u.SetResourceVersion(version)
		_, err := carrier.MoveFields(ctx, m.config.Client, u, carrier.Managers(todo.have.former), todo.have.keeper.FieldManager())
		return err
	})
}

// apply writes a MachineService in place of what was there, and makes it what the API server says that it is then.
func (m *Manager) apply(ctx context.Context, u *unstructured.Unstructured, have *placed, options ...client.ApplyOption) error {
	keeper, _ := carrier.Keepers(ctx, m.Name(), nil, "")
	options = append(options, client.FieldOwner(keeper.FieldManager()), client.ForceOwnership)
	return m.whileSame(ctx, have, func(version string) error {
		u.SetResourceVersion(version)
		return m.config.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), options...)
	})
}

// attempts is how often something is written again because nothing but the status has changed.
const attempts = 5

// whileSame writes in place of a version of a MachineService, or of none, and again in place of the next one if it differs by its status
// only: that changes about every second while containers are replaced.
func (m *Manager) whileSame(ctx context.Context, p *placed, write func(version string) error) error {
	if p == nil {
		return write(absent.Version)
	}
	err := write(p.GetResourceVersion())
	for range attempts {
		if !apierrors.IsConflict(err) {
			return err
		}
		now := &unstructured.Unstructured{}
		now.SetGroupVersionKind(p.GroupVersionKind())
		if readErr := m.config.Client.Get(ctx, client.ObjectKeyFromObject(p), now); readErr != nil || !sameButStatus(p, now) {
			return err
		}
		err = write(now.GetResourceVersion())
	}
	return err
}

// sameButStatus tells whether two states of a MachineService differ in nothing that is written here.
func sameButStatus(a, b client.Object) bool {
	return a.GetUID() == b.GetUID() && a.GetGeneration() == b.GetGeneration() && maps.Equal(a.GetLabels(), b.GetLabels()) &&
		maps.Equal(a.GetAnnotations(), b.GetAnnotations()) && a.GetDeletionTimestamp().IsZero() == b.GetDeletionTimestamp().IsZero()
}

// setPaused writes the annotations, unless the MachineService has changed since. Nil takes them away.
func (m *Manager) setPaused(ctx context.Context, p *placed, value any) error {
	suspending, _ := carrier.Keepers(ctx, m.Name()+"-suspend", nil, "")
	err := m.whileSame(ctx, p, func(version string) error {
		marking := carrier.Marking(p, version, nil, map[string]any{framework.PausedAnnotation: value, SuspendedAnnotation: value})
		return m.config.Client.Patch(ctx, p.DeepCopy(), marking, client.FieldOwner(suspending.FieldManager()))
	})
	if err != nil {
		return fmt.Errorf("pause or resume MachineService %s/%s: %w", p.GetNamespace(), p.GetName(), err)
	}
	return nil
}

// planObject names a MachineService in a plan.
func planObject(p *placed) plan.Object {
	return plan.Object{
		APIVersion: p.GetAPIVersion(), Kind: p.GetKind(), Namespace: p.GetNamespace(), Name: p.GetName(),
		UID: p.GetUID(), Version: p.GetResourceVersion(),
	}
}
