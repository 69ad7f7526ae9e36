package framework

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/operatorkit/operatorkit/framework/plan"
)

// maxUndescribed is how many bytes a part of a patch may have that is kept as it is. The description of a larger one is
// smaller, after it was cut.
const maxUndescribed = 32 << 10

// undescribed is a part of a patch that was not put into words yet, or, if it was easier to do so, one that was.
type undescribed struct {
	action        plan.Action
	part, current any
	// size is about how many bytes these take.
	size    int
	changes []plan.Change
}

// recordChanges notes what is about to be applied by a CRUD resource. Applying may change the part, so that what is kept
// of it is a copy.
func recordChanges(s *scope, action plan.Action, part, current any) {
	if s == nil || s.reconciliation.recording == nil {
		return
	}
	u, ok := keep(action, part, current)
	if !ok {
		u = undescribed{changes: plan.Describe(action, part, current)}
	}
	r := s.reconciliation.recording
	defer r.unlock()
	switch of := r.lock(s.place); {
	case of == nil:
	case !ok && len(of.parts) == 0:
		of.Changes = append(of.Changes, u.changes...)
	default:
		of.parts = append(of.parts, u)
	}
}

// describe puts all parts into words.
func (r *ResourceRecord) describe() {
	for _, u := range r.parts {
		if u.part != nil {
			u.changes = plan.Describe(u.action, u.part, u.current)
		}
		r.Changes = append(r.Changes, u.changes...)
	}
	r.parts = nil
}

// keep copies a part of a patch, and what is there already if that is needed to describe the part. It does so only for
// objects of which it is known how large they are.
func keep(action plan.Action, part, current any) (undescribed, bool) {
	u := undescribed{action: action}
	if part == nil || !u.take(&u.part, part) {
		return u, false
	}
	if action == plan.Update && current != nil && !u.take(&u.current, current) {
		return u, false
	}
	return u, true
}

// take copies an object, or a list of objects, and tells whether it did.
func (u *undescribed) take(into *any, v any) bool {
	if object, ok := v.(sized); ok {
		return u.takeObject(into, object)
	}
	list := reflect.ValueOf(v)
	if list.Kind() != reflect.Slice || list.Type().NumMethod() > 0 {
		return false
	}
	copies := make([]any, list.Len())
	for i := range copies {
		object, ok := list.Index(i).Interface().(sized)
		if !ok || !u.takeObject(&copies[i], object) {
			return false
		}
	}
	*into = copies
	return true
}

func (u *undescribed) takeObject(into *any, object sized) bool {
	if isNil(object) {
		*into = object
		return true
	}
	u.size += object.Size()
	if u.size > maxUndescribed {
		return false
	}
	// The copy of a type that embeds another one may be of the latter, which does not say the same of itself.
	copied := object.DeepCopyObject()
	*into = copied
	return reflect.TypeOf(copied) == reflect.TypeOf(object)
}

// sized is implemented by the objects of Kubernetes' own types.
type sized interface {
	runtime.Object
	Size() int
}
