package framework_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/framework"
)

// nameless is an object that can't tell its name.
type nameless struct{ *corev1.ConfigMap }

func (nameless) GetName() string { panic("no name") }

func TestAResourceRunsForAnObjectWhoseNamePanics(t *testing.T) {
	ran := 0
	count := func(context.Context, any) error { ran++; return nil }
	resources := []framework.Resource{&resource{name: "r", created: count, deleted: count}}
	if err := framework.ProcessUpdate(t.Context(), nameless{&corev1.ConfigMap{}}, resources); err != nil || ran != 1 {
		t.Errorf("it ran %d times, error %v", ran, err)
	}
}
