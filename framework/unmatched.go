package framework

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/framework/internal/keyed"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/cut"
)

// unmatched remembers the objects that no resource set handles, and for each whether it has a
// finalizer of the framework.
type unmatched struct{ keyed.Map[bool] }

// note records whether an object matches a set, and reports whether that is news about an unmatched
// object.
func (u *unmatched) note(key informer.Key, matches, finalizer bool) (news bool) {
	if matches {
		u.Delete(key)
		return false
	}
	before, known := u.Set(key, finalizer)
	return !known || before != finalizer
}

func (u *unmatched) count() (objects, withFinalizer int) {
	for finalizer := range u.Values {
		objects++
		if finalizer {
			withFinalizer++
		}
	}
	return objects, withFinalizer
}

// unmatchedReports reports objects that no resource set handles, once, by an event on the object.
type unmatchedReports struct {
	*Framework
	unobserved
}

func (f unmatchedReports) ended(e ended) {
	r := e.reconciliation
	unmatched := r != nil && (e.reason == reasonNoResourceSet || IsNoResourceSet(e.err))
	finalizer := unmatched && f.hasFinalizer(r.object)
	if !f.unmatched.note(e.key, !unmatched, finalizer) || e.err != nil {
		return
	}
	record := f.reporter.recordOn(r.object)
	if record == nil {
		return
	}
	kind := corev1.EventTypeNormal
	message := fmt.Sprintf("no resource set of %s handles it: it is left alone", f.Identity())
	if finalizer {
		kind = corev1.EventTypeWarning
		message += fmt.Sprintf(". It keeps the finalizer %q, and its deletion will wait: "+
			"give it back the labels by which a resource set handled it, or have a set with HandlesRest", f.finalizer)
	}
	record(kind, ReasonNoResourceSet, cut.Text(message, maxEventMessage))
}
