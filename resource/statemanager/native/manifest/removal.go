package manifest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// removal is what has to be done to take a service away.
type removal struct {
	steps []step
	have  *inventory
	// last tells that nothing is left after the steps.
	last bool
}

func (c *Carrier) computeRemoval(
	ctx context.Context, cluster carrier.Cluster, service *carrier.Service, have *inventory,
) (*carrier.Result, error) {
	if have == nil {
		return &carrier.Result{}, nil
	}
	if have.OwnerNamespace != service.Owner.Namespace || have.OwnerName != service.Owner.Name {
		return &carrier.Result{Notes: []string{
			fmt.Sprintf("service %s stays, because it is of ServiceSet %s/%s now", service.Key, have.OwnerNamespace, have.OwnerName),
		}}, nil
	}
	result := &carrier.Result{Found: have.found(service), Health: carrier.Health{Phase: v1alpha1.ServiceStateDeleting}}
	todo := &removal{have: have}
	waits := ""
	var at stage
	for _, object := range homeLast(backwards(have.objects), service.Key.Namespace) {
		stage := stageOf(object.gvk().GroupKind())
		if waits != "" && stage != at {
			// What is in earlier stages may have to let go what is waited for.
			break
		}
		s, holds, note, err := c.planRemoval(ctx, cluster, service, object, true)
		if err != nil {
			return result, err
		}
		if holds != "" && waits == "" {
			waits, at = holds, stage
		}
		if note != "" {
			result.Notes = append(result.Notes, note)
		}
		if s.action != "" {
			todo.steps = append(todo.steps, s)
		}
	}
	result.Health.Message, todo.last = waits, waits == ""
	if waits != "" {
		result.Requeue = again
	}
	result.Changes = changesOf(todo.steps)
	if len(todo.steps) == 0 && todo.last {
		result.Changes = []plan.Change{{
			Action: plan.Delete, Description: "forget the service",
			Object: plan.Object{
				APIVersion: "v1", Kind: "Secret", Namespace: have.secret.Namespace, Name: have.secret.Name,
				UID: have.secret.UID, Version: have.secret.ResourceVersion,
			},
		}}
	}
	if len(result.Changes) > 0 {
		result.Payload = todo
	}
	return result, nil
}

// homeLast puts the namespace that the inventory is in behind all others: the inventory goes with it.
func homeLast(objects []objectReference, namespace string) []objectReference {
	isHome := func(r objectReference) bool { return isNamespace(r.gvk().GroupKind()) && r.Name == namespace }
	at := slices.IndexFunc(objects, isHome)
	if at < 0 {
		return objects
	}
	home := objects[at]
	return append(slices.Delete(objects, at, at+1), home)
}

// carryOutRemoval takes objects away stage by stage. It stops where a stage takes its time; another Compute goes on there.
func (c *Carrier) carryOutRemoval(ctx context.Context, cluster carrier.Cluster, service *carrier.Service, todo *removal) error {
	begun := 0
	for i, s := range todo.steps {
		if i > 0 && stageOf(s.object.gvk().GroupKind()) != stageOf(todo.steps[i-1].object.gvk().GroupKind()) {
			gone, err := c.gone(ctx, cluster, todo.steps[begun:i])
			if !gone || err != nil {
				return err
			}
			begun = i
		}
		if err := takeAway(ctx, cluster, service, s); err != nil {
			return err
		}
	}
	if !todo.last {
		return nil
	}
	gone, err := c.gone(ctx, cluster, todo.steps[begun:])
	if !gone || err != nil {
		return err
	}
	return c.forget(ctx, cluster, todo.have)
}

// forget deletes an inventory, if all objects in it are gone or were let go.
func (c *Carrier) forget(ctx context.Context, cluster carrier.Cluster, have *inventory) error {
	uid, version := have.secret.UID, have.secret.ResourceVersion
	err := cluster.Client().Delete(ctx, have.secret.DeepCopy(), client.Preconditions(metav1.Preconditions{UID: &uid, ResourceVersion: &version}))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the inventory of service %s: %w", have.key, err)
	}
	return nil
}

// gone waits a little for deleted objects to go. What is seen to be gone is not read again.
func (c *Carrier) gone(ctx context.Context, cluster carrier.Cluster, steps []step) (bool, error) {
	left := slices.DeleteFunc(slices.Clone(steps), func(s step) bool { return s.action != plan.Delete })
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, c.config.DeletionTimeout, true, func(ctx context.Context) (bool, error) {
		for len(left) > 0 {
			have, err := getMetadata(ctx, cluster, left[0].object)
			if err != nil || have != nil && have.UID == left[0].uid {
				return false, err
			}
			left = left[1:]
		}
		return true, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return false, nil
	}
	return err == nil, err
}

// takeAway deletes an object, or lets it go. One that has changed since that was planned is a conflict.
func takeAway(ctx context.Context, cluster carrier.Cluster, service *carrier.Service, s step) error {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(s.object.gvk())
	object.SetNamespace(s.object.Namespace)
	object.SetName(s.object.Name)
	doing := "delete"
	why, err := "", error(nil)
	if s.action == plan.Delete {
		// Others may have come since it was planned.
		why, err = carrier.Bystanders(ctx, cluster, service, object, asksToStay)
	}
	switch {
	case err != nil:
	case why != "":
		err = apierrors.NewConflict(schema.GroupResource{Group: s.object.gvk().Group, Resource: s.object.Kind}, s.object.Name, errors.New(why))
	case s.action == plan.Delete:
		err = cluster.Client().Delete(ctx, object,
			client.Preconditions{UID: &s.uid, ResourceVersion: &s.version}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	default:
		doing = "let go"
		err = cluster.Client().Patch(ctx, object, undressed(s), client.FieldOwner(service.Owner.FieldManager()))
	}
	if err != nil && !isAbsent(err) {
		return fmt.Errorf("%s %s: %w", doing, s.object, err)
	}
	return nil
}
