package main

import (
	"context"
	"errors"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
)

// The label that tells primaries from their children.
const (
	roleLabel   = "bench.operatorkit.io/role"
	rolePrimary = "primary"
	roleChild   = "child"
)

// desiredChild is what a primary's child should be. All contenders make the same children.
func desiredChild(primary *corev1.ConfigMap, suffix string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: primary.Namespace,
			Name:      primary.Name + suffix,
			Labels:    map[string]string{roleLabel: roleChild},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1",
				Kind:       "ConfigMap",
				Name:       primary.Name,
				UID:        primary.UID,
				Controller: new(true),
			}},
		},
		Data: map[string]string{"page": primary.Data["page"]},
	}
}

// childOps is a CRUD resource as an author writes it: one child for each primary.
type childOps struct {
	name   string
	suffix string
	// children is where current states are read.
	children informer.Source
	// create writes what is missing.
	create func(ctx context.Context, child *corev1.ConfigMap) error
}

var errUnexpectedChange = errors.New("a change that should not be necessary")

// newChildResource returns a framework's resource.
func newChildResource(ops childOps) (framework.Resource, error) {
	logger, err := operatorKitLogger()
	if err != nil {
		return nil, err
	}
	return framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[*corev1.ConfigMap, *corev1.ConfigMap]{Logger: logger, Ops: ops})
}

func (o childOps) Name() string { return o.name }

func (o childOps) GetCurrentState(_ context.Context, primary *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	obj, exists, err := o.children.Get(informer.Key{Namespace: primary.Namespace, Name: primary.Name + o.suffix})
	if err != nil || !exists {
		return nil, err
	}
	return obj.(*corev1.ConfigMap), nil
}

func (o childOps) GetDesiredState(_ context.Context, primary *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	return desiredChild(primary, o.suffix), nil
}

func (o childOps) NewUpdatePatch(_ context.Context, _, current, desired *corev1.ConfigMap) (*framework.TypedPatch[*corev1.ConfigMap], error) {
	if upToDate(current, desired) {
		return nil, nil
	}
	patch := framework.NewTypedPatch[*corev1.ConfigMap]()
	if current == nil {
		patch.SetCreateChange(desired)
	} else {
		patch.SetUpdateChange(desired)
	}
	return patch, nil
}

// upToDate tells whether nothing is to be done for a child.
func upToDate(current, desired *corev1.ConfigMap) bool {
	return current != nil && maps.Equal(current.Data, desired.Data)
}

func (o childOps) NewDeletePatch(context.Context, *corev1.ConfigMap, *corev1.ConfigMap, *corev1.ConfigMap) (*framework.TypedPatch[*corev1.ConfigMap], error) {
	return nil, nil
}

func (o childOps) ApplyCreateChange(ctx context.Context, _, child *corev1.ConfigMap) error {
	return o.create(ctx, child)
}

func (o childOps) ApplyUpdateChange(context.Context, *corev1.ConfigMap, *corev1.ConfigMap) error {
	return errUnexpectedChange
}

func (o childOps) ApplyDeleteChange(context.Context, *corev1.ConfigMap, *corev1.ConfigMap) error {
	return errUnexpectedChange
}

// creator creates children and counts those that it made. One that exists already is no error: a store may be late.
func creator(c client.Client, done *countdown) func(context.Context, *corev1.ConfigMap) error {
	return func(ctx context.Context, child *corev1.ConfigMap) error {
		err := client.IgnoreAlreadyExists(c.Create(ctx, child))
		if err == nil && child.UID != "" {
			done.one()
		}
		return err
	}
}
