package manifest

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// observe looks at all objects of a service: it fills in the health and, if asked, the drift of a result, and returns the
// steps that put the drift right, and the Jobs that are done and gone.
func (c *Carrier) observe(
	ctx context.Context, cluster carrier.Cluster, live client.Reader, service *carrier.Service, have *inventory, drift bool, result *carrier.Result,
) (differing []step, done []string, err error) {
	manifests, err := have.manifests()
	if err != nil {
		return nil, nil, err
	}
	left := c.config.HealthTimeout - have.since(c.config.Clock.Now())
	health := summary{left: left}
	for _, m := range manifests {
		object, err := get(ctx, live, referTo(m.Object))
		if err != nil {
			return nil, nil, err
		}
		if object == nil && c.vanished(m, have) {
			// A watch may not have seen it yet.
			if object, err = get(ctx, cluster.Client(), referTo(m.Object)); err != nil {
				return nil, nil, err
			}
			if object == nil {
				done = append(done, referTo(m.Object).String())
				continue
			}
		}
		if drift {
			var s step
			if object, s, err = c.drift(ctx, cluster, service, object, m); err != nil {
				return nil, nil, err
			}
			if s.action != "" {
				differing = append(differing, s)
			}
		}
		health.add(service, m, object)
	}
	result.Health, result.Requeue = health.phase(c.config.HealthTimeout)
	result.Drift = changesOf(differing)
	return differing, done, nil
}

// drift returns how an object differs from what was put there, as the step that puts it right, and the object as it is. What looks
// different in a watch is read from the cluster before it is called so.
func (c *Carrier) drift(
	ctx context.Context, cluster carrier.Cluster, service *carrier.Service, object *unstructured.Unstructured, m manifest,
) (*unstructured.Unstructured, step, error) {
	s := step{object: referTo(m.Object), manifest: m, force: true}
	if object != nil && c.verdicts.AsDesired(object, m.beside(service, object).Object) {
		return object, step{}, nil
	}
	object, err := get(ctx, cluster.Client(), s.object)
	if err != nil {
		return nil, step{}, err
	}
	if object == nil {
		s.action, s.fields = plan.Create, m.created()
		return nil, s, nil
	}
	if object.GetDeletionTimestamp() != nil {
		return object, step{}, nil
	}
	if c.verdicts.AsDesired(object, m.beside(service, object).Object) {
		return object, step{}, nil
	}
	if service.ClaimOn(object.GetLabels()) == carrier.Foreign {
		s.refused = &RefusedError{Object: m.String(), Owner: ownerOf(object)}
	}
	now, fields, err := difference(ctx, cluster, service, object, m, true)
	if now == nil || err != nil {
		return now, step{}, err
	}
	s.manifest = m.beside(service, now)
	if len(fields) == 0 {
		c.verdicts.Remember(now, s.manifest.Object)
		return now, step{}, nil
	}
	s.action, s.fields, s.uid, s.version = plan.Update, fields, now.GetUID(), now.GetResourceVersion()
	return now, s, nil
}

// repair makes the drift of a service what is carried out, if that is wanted.
func (c *Carrier) repair(
	ctx context.Context, cluster carrier.Cluster, service *carrier.Service, have *inventory, differing []step, done []string, result *carrier.Result,
) error {
	if len(differing) == 0 {
		return nil
	}
	if service.Config.SyncMode != v1alpha1.SyncModeContinuousWithDriftDetection {
		result.Notes = append(result.Notes, fmt.Sprintf("%d of its objects differ from what was put there, and stay so in the sync mode %s",
			len(differing), cmp.Or(service.Config.SyncMode, v1alpha1.SyncModeContinuous)))
		return nil
	}
	manifests, err := have.manifests()
	if err != nil {
		return err
	}
	var faults []error
	for i, s := range differing {
		if s.refused != nil {
			faults = append(faults, s.refused)
			continue
		}
		if s.action == plan.Update && service.Config.StopOnConflict {
			object, err := get(ctx, cluster.Client(), s.object)
			if object == nil || err != nil {
				return err
			}
			if _, _, err := difference(ctx, cluster, service, object, s.manifest, false); err != nil {
				faults = append(faults, err)
			}
			differing[i].force = false
		}
	}
	if len(faults) > 0 {
		return join(faults)
	}
	record := have.record
	record.Done = done
	todo := &installation{steps: differing, manifests: manifests, packed: have.secret.Data[manifestsKey], record: record,
		objects: have.objects, have: have}
	result.Changes, result.Payload = changesOf(differing), todo
	return nil
}

// summary is the health of several objects.
type summary struct {
	left                       time.Duration
	failed, unready, going     string
	failures, unreadys, goings int
}

// add takes note of an object, nil if it is missing.
func (s *summary) add(service *carrier.Service, m manifest, object *unstructured.Unstructured) {
	name := referTo(m.Object).String()
	note := func(first *string, count *int, message string) {
		if *count++; *count == 1 {
			*first = name + ": " + message
		}
	}
	if object == nil {
		note(&s.unready, &s.unreadys, "it is missing")
		return
	}
	object = carrier.AsItEnded(object)
	if object.GetDeletionTimestamp() != nil {
		note(&s.going, &s.goings, "it is being deleted"+holders(object))
		return
	}
	found, err := service.StatusOf(object)
	if err != nil {
		note(&s.unready, &s.unreadys, "its state can't be told: "+err.Error())
		return
	}
	switch found.Status {
	case status.FailedStatus:
		note(&s.failed, &s.failures, withReasons(found.Message, object))
	case status.CurrentStatus:
	default:
		note(&s.unready, &s.unreadys, withReasons(found.Message, object))
	}
}

// withReasons adds what a condition says beyond kstatus.
func withReasons(message string, object *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, condition := range conditions {
		if kind := textOf(condition, "type"); textOf(condition, "status") == string(metav1.ConditionTrue) && (kind == "ReplicaFailure" || kind == "Failed") {
			return message + " (" + textOf(condition, "message") + ")"
		}
	}
	return message
}

// phase is the health of all, and after how long it changes by itself.
func (s *summary) phase(timeout time.Duration) (carrier.Health, time.Duration) {
	more := func(message string, count int) string {
		if count > 1 {
			return fmt.Sprintf("%s, and %d more", message, count-1)
		}
		return message
	}
	switch {
	case s.failures > 0:
		return carrier.Health{Phase: v1alpha1.ServiceStateFailed, Message: more(s.failed, s.failures)}, 0
	case s.goings > 0:
		return carrier.Health{Phase: v1alpha1.ServiceStateProvisioning, Message: more(s.going, s.goings)}, again
	case s.unreadys > 0 && s.left <= 0:
		return carrier.Health{
			Phase:   v1alpha1.ServiceStateFailed,
			Message: fmt.Sprintf("not ready %s after it was applied: %s", timeout, more(s.unready, s.unreadys)),
		}, 0
	case s.unreadys > 0:
		return carrier.Health{Phase: v1alpha1.ServiceStateProvisioning, Message: more(s.unready, s.unreadys)}, s.left
	}
	return carrier.Health{Phase: v1alpha1.ServiceStateDeployed}, 0
}
