package upgrade

import (
	"fmt"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
)

// IsReady reports whether an object is ready: its condition Ready is True for its newest generation,
// or, without such a condition, kstatus says that it is current. An object that is not a Kubernetes
// object is ready.
func IsReady(obj any) bool {
	u := contentOf(obj)
	if u == nil {
		return true
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if condition["type"] != "Ready" {
			continue
		}
		seen, given := condition["observedGeneration"].(int64)
		return condition["status"] == "True" && (!given || seen == u.GetGeneration())
	}
	result, err := status.Compute(u)
	return err == nil && result.Status == status.CurrentStatus
}

// changedByUser reports whether the generation of an object is newer than the one that its status
// says was observed.
func changedByUser(obj any) bool {
	u := contentOf(obj)
	if u == nil {
		return false
	}
	observed, given, err := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	return err == nil && given && observed != 0 && u.GetGeneration() > observed
}

// contentOf returns the content of a Kubernetes object, or nil for other objects.
func contentOf(obj any) *unstructured.Unstructured {
	switch o := obj.(type) {
	case *unstructured.Unstructured:
		return o
	case runtime.Object:
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return nil
		}
		return &unstructured.Unstructured{Object: content}
	}
	return nil
}

// limitedBy says what of a proposal the upgrade limits, without values: all but changes of the status
// of the object itself. It is empty if that is nothing.
func limitedBy(would framework.Proposal) (text string, err error) {
	if would.Opaque {
		return fmt.Sprintf("run resource %q, which can't predict what it does", would.Resource), nil
	}
	changes, err := would.Changes()
	if err != nil {
		return "", err
	}
	if len(changes) == 0 && would.Certain() {
		return fmt.Sprintf("apply resource %q", would.Resource), nil
	}
	var words []string
	for _, c := range changes {
		var paths []string
		onlyStatus := c.Action == plan.Update && len(c.Fields) > 0 && isSelf(c.Object, would)
		for _, f := range c.Fields {
			paths = append(paths, f.Path)
			onlyStatus = onlyStatus && plan.Below(f.Path, "status")
		}
		switch {
		case onlyStatus:
		case c.Action == plan.Update && len(paths) > 0:
			words = append(words, fmt.Sprintf("%s %s (%s)", c.Action, c.Object, strings.Join(paths, ", ")))
		default:
			words = append(words, fmt.Sprintf("%s %s", c.Action, c.Object))
		}
	}
	return strings.Join(words, "; "), nil
}

// isSelf reports whether a change is one of the object that is reconciled.
func isSelf(o plan.Object, would framework.Proposal) bool {
	return o.Name == would.Key.Name && o.Namespace == would.Key.Namespace && (o.UID == "" || o.UID == metaOf(would.Object).GetUID())
}
