package helm

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// definitionTimeout is how long a new definition may take until its kind can be used.
const definitionTimeout = 30 * time.Second

var podKind = schema.GroupKind{Kind: "Pod"}

func jobDone(job *unstructured.Unstructured) (bool, *hookError) {
	for _, condition := range conditionsIn(job) {
		if condition["status"] != "True" {
			continue
		}
		switch condition["type"] {
		case "Complete":
			return true, nil
		case "Failed":
			return false, &hookError{reason: fmt.Sprintf("failed: %v: %v", condition["reason"], condition["message"])}
		}
	}
	return false, nil
}

func podDone(pod *unstructured.Unstructured) (bool, *hookError) {
	phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
	switch phase {
	case "Succeeded":
		return true, nil
	case "Failed":
		message, _, _ := unstructured.NestedString(pod.Object, "status", "message")
		return false, &hookError{reason: "failed " + message}
	}
	return false, nil
}

// conditionsIn are the conditions in the status of an object.
func conditionsIn(u *unstructured.Unstructured) []map[string]any {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	var conditions []map[string]any
	for _, c := range list {
		if condition, ok := c.(map[string]any); ok {
			conditions = append(conditions, condition)
		}
	}
	return conditions
}

// established waits until the kinds of a definition can be used.
func (j *job) established(ctx context.Context, definition *unstructured.Unstructured) error {
	err := carrier.AwaitKinds(ctx, j.client, j.mapper, definitionTimeout, carrier.Definitions{definition}, carrier.ServedBy(definition),
		func(u *unstructured.Unstructured) string { return describe(u) })
	if err != nil {
		return fmt.Errorf("wait until the kind of %s can be used: %w", describe(definition), err)
	}
	return nil
}
