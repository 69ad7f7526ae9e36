package upgrade

import (
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

// affects returns the changes that the upgrade limits: all but changes of the status of the object
// itself.
func affects(changes []plan.Change, would framework.Proposal) (limited []plan.Change) {
	for _, c := range changes {
		if !isOwnStatus(c, would) {
			limited = append(limited, c)
		}
	}
	return limited
}

func isOwnStatus(c plan.Change, would framework.Proposal) bool {
	own := c.Object.Name == would.Key.Name && c.Object.Namespace == would.Key.Namespace &&
		(c.Object.UID == "" || c.Object.UID == uidOf(would.Object))
	if c.Action != plan.Update || len(c.Fields) == 0 || !own {
		return false
	}
	for _, f := range c.Fields {
		if f.Path != "status" && !strings.HasPrefix(f.Path, "status.") {
			return false
		}
	}
	return true
}
