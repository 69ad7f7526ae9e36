package helm

import (
	"context"
	"fmt"
	"time"

	"helm.sh/helm/v4/pkg/release/common"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/internal/serverside"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// correct is the payload for objects that are to be applied again as the release has them.
type correct struct {
	objects []*unstructured.Unstructured
	// hooks are what hooks have left behind, which gets a new owner, and adopted are the revisions that do afterwards.
	hooks   []*metav1.PartialObjectMetadata
	adopted records
	// marked is the revision that gets marks afterwards, if any; nil takes one away.
	marked *record
	marks  map[string]any
}

// standing looks at a release that is as it should be: at its health, at its drift, and whether another owner has it.
func (j *job) standing(ctx context.Context, revisions records) (*carrier.Result, error) {
	latest := revisions.latest()
	result := &carrier.Result{Found: j.found(latest)}
	seen, err := j.look(ctx, latest)
	if waits(err, result) {
		return result, nil
	}
	if err != nil {
		return nil, err
	}
	result.Drift = seen.drift
	result.Health, result.Requeue = j.healthOf(seen.conditions, seen.applied)
	if j.inherits(latest) {
		return result, j.planAdoption(ctx, revisions, seen, result)
	}
	if j.service.Config.SyncMode == v1alpha1.SyncModeContinuousWithDriftDetection && len(seen.drift) > 0 {
		result.Changes, result.Payload = seen.drift, &correct{objects: seen.drifted}
		return result, seen.foreign
	}
	if j.options.atomic && latest.annotations[healthyAnnotation] == "" {
		return j.settle(ctx, revisions, result)
	}
	j.planOptions(latest, result)
	return result, nil
}

// planOptions plans that a release knows the options with which it is uninstalled, when they have changed since it was put there.
func (j *job) planOptions(latest *record, result *carrier.Result) {
	marks, disabled := map[string]any{timeoutAnnotation: j.options.timeout.String()}, any(nil)
	if j.options.disableHooks {
		disabled = "disabled"
	}
	marks[hooksAnnotation] = disabled
	var fields []plan.FieldChange
	for _, option := range []struct{ name, annotation string }{{"timeout", timeoutAnnotation}, {"hooks", hooksAnnotation}} {
		var before any
		if text := latest.annotations[option.annotation]; text != "" {
			before = text
		}
		if before != marks[option.annotation] {
			fields = append(fields, plan.FieldChange{Path: option.name, Old: before, New: marks[option.annotation]})
		}
	}
	if len(fields) > 0 {
		result.Changes = []plan.Change{j.releaseChange(plan.Update, "remember the options of its removal", fields...)}
		result.Payload = &correct{marked: latest, marks: marks}
	}
}

// planAdoption plans that a release, which stands for another service set or under a former name, gets its owner's marks as it is:
// nothing is installed again, and no hook is run.
func (j *job) planAdoption(ctx context.Context, revisions records, seen *view, result *carrier.Result) error {
	todo := &correct{adopted: revisions}
	// Other marks are no drift, and the next look tells of what else differs.
	result.Drift = nil
	if latest := revisions.latest(); j.service.ClaimOn(latest.labels) == carrier.Own {
		// All other marks are those of the name.
		result.Changes = append(result.Changes, j.releaseChange(plan.Update, "taken over from a ServiceSet of the same name", plan.FieldChange{
			Path: "owner-uid", Old: latest.annotations[ownerUIDAnnotation], New: string(j.service.Owner.UID),
		}))
		result.Payload = todo
		return nil
	}
	result.Changes = append(result.Changes, j.releaseChange(plan.Update, "taken over from "+revisions.whose(), plan.FieldChange{
		Path: "owner", Old: revisions.whose(), New: j.service.Owner.String(),
	}))
	if seen != nil {
		todo.objects = seen.drifted
		result.Changes = append(result.Changes, seen.drift...)
		for _, u := range seen.hooks {
			left, err := j.hookLive(ctx, u)
			if err != nil {
				return err
			}
			if left != nil && j.service.ClaimOn(left.Labels) == carrier.Inherited {
				todo.hooks = append(todo.hooks, left)
				change := deletionOf(u, left)
				change.Action, change.Description = plan.Update, "taken over from "+carrier.Whose(left)
				result.Changes = append(result.Changes, change)
			}
		}
		if seen.foreign != nil {
			return seen.foreign
		}
	}
	result.Payload = todo
	return nil
}

// settle decides about a revision that is to be taken back if it does not become healthy.
func (j *job) settle(ctx context.Context, revisions records, result *carrier.Result) (*carrier.Result, error) {
	latest := revisions.latest()
	switch result.Health.Phase {
	case v1alpha1.ServiceStateDeployed:
		result.Payload = &correct{marked: latest, marks: map[string]any{healthyAnnotation: "true"}}
		result.Changes = []plan.Change{j.releaseChange(plan.Update, "", plan.FieldChange{Path: "healthy", New: true})}
	case v1alpha1.ServiceStateFailed:
		return result, j.planTakeBack(ctx, revisions, result)
	}
	return result, nil
}

// planTakeBack plans to take back the latest revision.
func (j *job) planTakeBack(ctx context.Context, revisions records, result *carrier.Result) error {
	todo := &takeBack{reason: j.hider.Text(result.Health.Message), to: lastGood(revisions), revisions: revisions}
	latest, err := j.load(ctx, revisions.latest())
	if err != nil {
		return err
	}
	j.hide(revisions, latest)
	p := &planner{job: j}
	var current, back []*unstructured.Unstructured
	if todo.to != nil {
		good, err := j.load(ctx, todo.to)
		if err != nil {
			return err
		}
		j.hide(revisions, good)
		if current, err = j.placed(latest.Manifest, nil, true); err != nil {
			return err
		}
		if back, err = j.placed(good.Manifest, nil, true); err != nil {
			return err
		}
		p.changes = append(p.changes, j.releaseChange(plan.Update, fmt.Sprintf("roll back to revision %d: %s", todo.to.revision, todo.reason)))
	} else {
		if current, err = j.goingOf(latest.Manifest); err != nil {
			return err
		}
		p.changes = append(p.changes, j.releaseChange(plan.Update, "uninstall: "+todo.reason))
	}
	for _, u := range back {
		if err := p.apply(ctx, u); err != nil {
			return err
		}
	}
	if todo.stale, err = p.removeStale(ctx, current, back); err != nil {
		return err
	}
	result.Notes = append(result.Notes, p.stays...)
	result.Changes, result.Payload = p.changes, todo
	return nil
}

// staleAfter returns the objects of a revision that are not in the one which takes its place.
func (j *job) staleAfter(ctx context.Context, latest, good *record) ([]*unstructured.Unstructured, error) {
	current, err := j.remember(ctx, latest)
	if err != nil {
		return nil, err
	}
	back, err := j.remember(ctx, good)
	if err != nil {
		return nil, err
	}
	return (&planner{job: j}).removeStale(ctx, current.objects, back.objects)
}

// lastGood returns the revision before the latest that was deployed and not refused, or nil.
func lastGood(revisions records) *record {
	for i := len(revisions) - 2; i >= 0; i-- {
		r, next := &revisions[i], &revisions[i+1]
		if r.refused() || next.annotations[refusedAnnotation] != "" {
			continue // An uninstallation has taken it back, or the next one has begun to.
		}
		if (r.status == common.StatusSuperseded || r.stands()) && r.annotations[failedAnnotation] == "" {
			return r
		}
	}
	return nil
}

// refused tells of a release that was taken back from what it should be.
func (j *job) refused(ctx context.Context, revisions records) (*carrier.Result, error) {
	latest := revisions.latest()
	result := &carrier.Result{Found: j.found(latest)}
	var seen *view
	if latest.stands() {
		var err error
		if seen, err = j.look(ctx, latest); err != nil && !waits(err, &carrier.Result{}) {
			return nil, err
		}
		if seen != nil {
			result.Drift = seen.drift
		}
	}
	result.Notes = []string{"it was taken back and is not tried again before the service changes"}
	result.Health = carrier.Health{Phase: v1alpha1.ServiceStateFailed, Message: latest.annotations[refusalAnnotation]}
	if j.inherits(latest) {
		return result, j.planAdoption(ctx, revisions, seen, result)
	}
	return result, nil
}

// view is how the objects of a release are.
type view struct {
	conditions []condition
	drift      []plan.Change
	drifted    []*unstructured.Unstructured
	// foreign is why what has drifted can't be put right: somebody else has it now.
	foreign error
	hooks   []*unstructured.Unstructured
	applied time.Time
}

// look looks at the objects of a revision. What the watches have is enough where it is as it should be; what looks otherwise
// is read from the API server.
func (j *job) look(ctx context.Context, r *record) (*view, error) {
	known, err := j.remember(ctx, r)
	if err != nil {
		return nil, err
	}
	seen := &view{applied: known.applied, hooks: known.hooks}
	for _, u := range known.objects {
		desired := j.dressed(u)
		live, err := j.read(ctx, j.live, desired)
		if err != nil {
			return nil, err
		}
		if live == nil || !j.asDesired(live, desired) {
			if live, err = j.read(ctx, j.client, desired); err != nil {
				return nil, err
			}
			if live == nil && carrier.Vanished(desired, j.config.Clock.Since(known.applied)) {
				continue
			}
			changes, err := j.drift(ctx, desired, live)
			if err != nil {
				return nil, err
			}
			if live != nil && seen.foreign == nil {
				seen.foreign = j.refuses(live)
			}
			if len(changes) > 0 {
				seen.drift = append(seen.drift, changes...)
				seen.drifted = append(seen.drifted, desired)
			}
		}
		seen.conditions = append(seen.conditions, j.conditionOf(desired, live))
	}
	if len(seen.drift) > 0 && !j.service.Put(r.annotations[fingerprintAnnotation]) {
		// It was made from other values, which drift may show.
		made, err := j.load(ctx, r)
		if err != nil {
			return nil, err
		}
		j.hide(records{*r}, made)
	}
	return seen, nil
}

// read reads an object; nil is one that is not there.
func (j *job) read(ctx context.Context, reader client.Reader, desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := emptyOf(desired)
	err := reader.Get(ctx, client.ObjectKeyFromObject(desired), live)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", describe(desired), err)
	}
	return live, nil
}

// asDesired tells whether a live object is as it should be, as far as that can be told from here, and but for what is ignored.
func (j *job) asDesired(live, desired *unstructured.Unstructured) bool {
	return j.verdicts.AsDesired(live, j.applied(live, desired))
}

// applied is what is compared with a live object: what it should be, without a status and but for what is ignored.
func (j *job) applied(live, desired *unstructured.Unstructured) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: serverside.Stable(j.service.Beside(desired, live, fieldManager).Object)}
}

// drift tells how a live object differs from what was applied.
func (j *job) drift(ctx context.Context, desired, live *unstructured.Unstructured) ([]plan.Change, error) {
	switch {
	case live == nil:
		return plan.Describe(plan.Create, desired, nil), nil
	case live.GetDeletionTimestamp() != nil, j.asDesired(live, desired):
		return nil, nil
	}
	p := &planner{job: j}
	if err := p.update(ctx, desired, live); err != nil {
		return nil, err
	}
	if len(p.changes) == 0 {
		j.verdicts.Remember(live, j.applied(live, desired))
	}
	if j.service.ClaimOn(live.GetLabels()) == carrier.Inherited {
		for i := range p.changes {
			p.changes[i].Description = "taken over from " + carrier.Whose(live)
		}
	}
	return p.changes, nil
}
