package helm

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"helm.sh/helm/v4/pkg/release/common"
	release "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// errBegun ends a call where a hook was begun, or what is in its way was deleted: the operation goes on when that has ended.
var errBegun = errors.New("a hook has not ended")

// operation is a revision on its way: an installation, an upgrade or a rollback, which is recorded as pending, or an uninstallation. Helm's
// actions would wait for hooks in the middle of it: this one ends there, and can be gone on with, by another process too, from what the
// record says.
type operation struct {
	*job
	ctx     context.Context
	release *stored
	// known are definitions that come with the chart.
	known carrier.Definitions
	// earlier are the revisions before.
	earlier records
	// stale are objects of those to be deleted.
	stale []*unstructured.Unstructured
	// at is how far the hooks are; nil before the first.
	at *progress
}

// eventsOf are those before and after what an operation does.
func eventsOf(status common.Status) (before, after release.HookEvent) {
	switch status {
	case common.StatusPendingInstall:
		return release.HookPreInstall, release.HookPostInstall
	case common.StatusPendingUpgrade:
		return release.HookPreUpgrade, release.HookPostUpgrade
	case common.StatusPendingRollback:
		return release.HookPreRollback, release.HookPostRollback
	}
	return release.HookPreDelete, release.HookPostDelete
}

// run carries the operation out, or on, and records how it ends. The error may be errBegun.
func (o *operation) run() error {
	if o.release.Info.Status == common.StatusUninstalling {
		return o.uninstall()
	}
	err := o.roll()
	if err == nil || errors.Is(err, errBegun) || o.ctx.Err() != nil {
		return err
	}
	what := "Release"
	switch o.release.Info.Status {
	case common.StatusPendingUpgrade:
		what = "Upgrade"
	case common.StatusPendingRollback:
		what = "Rollback"
	}
	return errors.Join(err, o.end(common.StatusFailed, fmt.Sprintf("%s %q failed: %s", what, o.release.Name, o.hider.Text(err.Error()))))
}

// roll puts the objects of a revision there, between its hooks.
func (o *operation) roll() error {
	status := o.release.Info.Status
	before, after := eventsOf(status)
	if o.at == nil || o.at.Event == before {
		if err := o.runHooks(before); err != nil {
			return fmt.Errorf("%s hooks failed: %w", before, err)
		}
		if err := o.apply(); err != nil {
			return err
		}
	}
	if err := o.runHooks(after); err != nil {
		return fmt.Errorf("%s hooks failed: %w", after, err)
	}
	if err := o.supersede(status != common.StatusPendingRollback); err != nil {
		return err
	}
	description := o.release.Info.Description
	switch status {
	case common.StatusPendingInstall:
		description = cmp.Or(o.options.description, "Install complete")
	case common.StatusPendingUpgrade:
		description = cmp.Or(o.options.description, "Upgrade complete")
	}
	return o.end(common.StatusDeployed, description)
}

// apply puts the objects of the revision there, and deletes what is left of earlier ones.
func (o *operation) apply() error {
	objects, err := o.placed(o.release.Manifest, o.known, false)
	if err != nil {
		return err
	}
	defined := carrier.DefinitionsIn(objects)
	for _, u := range objects {
		create := func() error { return o.deploy(o.dressed(u)) }
		if !defined.Define(u.GroupVersionKind().GroupKind()) {
			err = create()
		} else if err = carrier.Retry(o.ctx, create); carrier.Refused(err) {
			err = &refusedError{err}
		}
		if err != nil {
			return err
		}
	}
	hooks, err := o.hooksOf(o.release.Hooks)
	if err != nil {
		return err
	}
	for _, u := range o.stale {
		remove := o.deleteOwn
		if isAmong(hooks, u) {
			remove = o.deleteHook
		}
		if err := remove(o.ctx, u); err != nil {
			return err
		}
	}
	return nil
}

// deploy applies an object, and waits until the kind of a definition can be used.
func (o *operation) deploy(u *unstructured.Unstructured) error {
	if err := o.put(o.ctx, u, o.refusesOthers); err != nil {
		return err
	}
	if u.GroupVersionKind().GroupKind() == carrier.DefinitionKind {
		return o.established(o.ctx, u)
	}
	return nil
}

// uninstall deletes the objects of the revision, between its hooks. That hooks fail afterwards keeps nothing from being gone.
func (o *operation) uninstall() error {
	before, after := eventsOf(o.release.Info.Status)
	if o.at == nil || o.at.Event == before {
		if err := o.runHooks(before); err != nil {
			if errors.Is(err, errBegun) || o.ctx.Err() != nil {
				return err
			}
			return errors.Join(fmt.Errorf("%s hooks failed: %w", before, err), o.end(common.StatusUninstalling, o.release.Info.Description))
		}
		if err := o.end(common.StatusUninstalling, o.release.Info.Description); err != nil {
			return err
		}
		objects, err := o.goingOf(o.release.Manifest)
		if err != nil {
			return err
		}
		var errs []error
		for _, u := range objects {
			if o.seen != nil && o.seen[carrier.IdentityOf(u)] == nil {
				continue
			}
			if err := o.deleteLive(o.ctx, u, o.ownLive); err != nil {
				errs = append(errs, fmt.Errorf("delete %s: %w", describe(u), err))
			}
		}
		if len(errs) > 0 {
			return errors.Join(errs...)
		}
	}
	failed := o.runHooks(after)
	if errors.Is(failed, errBegun) || o.ctx.Err() != nil {
		return failed
	}
	if failed != nil {
		failed = fmt.Errorf("%s hooks failed: %w", after, failed)
	}
	return errors.Join(failed, o.end(common.StatusUninstalled, "Uninstallation complete"), o.supersede(false))
}

// supersede says of revisions that stood before that they don't any more. Where none did, an installation or an upgrade takes the place of the
// last one, unless that was uninstalled.
func (o *operation) supersede(last bool) error {
	var over []record
	for i := range o.earlier {
		if o.earlier[i].stands() {
			over = append(over, o.earlier[i])
		}
	}
	if latest := o.earlier.latest(); last && len(over) == 0 && latest != nil && latest.status != common.StatusUninstalled {
		over = append(over, *latest)
	}
	for _, r := range over {
		earlier, err := o.load(o.ctx, &r)
		if apierrors.IsNotFound(err) {
			continue // It was one too many for the history.
		}
		if err != nil {
			return err
		}
		earlier.Info.Status = common.StatusSuperseded
		if err := o.update(o.ctx, earlier); err != nil {
			return fmt.Errorf("mark revision %d as superseded: %w", r.revision, err)
		}
	}
	return nil
}

// end records a status, with which no hook is under way any more.
func (o *operation) end(status common.Status, description string) error {
	o.release.SetStatus(status, description)
	o.at = nil
	annotations := map[string]string{progressAnnotation: ""}
	if status == common.StatusDeployed {
		annotations[installedAnnotation] = "true"
	}
	o.release.annotate(annotations)
	if err := o.update(o.ctx, o.release); err != nil {
		return fmt.Errorf("record that revision %d is %s: %w", o.release.Version, status, err)
	}
	return nil
}

// goOn is the payload for an operation whose hook has ended, or that takes something back and was interrupted.
type goOn struct {
	release   *stored
	revisions records
	stale     []*unstructured.Unstructured
	at        *progress
}

// isUnderway tells whether a revision is gone on with: one of which a hook was begun, that this release waits for, and one that takes
// something back and has not got to its end. What is left of an uninstallation is the business of removals, unless it takes something back.
func (j *job) isUnderway(latest *record) bool {
	if !latest.made() || j.service.ClaimOn(latest.labels) != carrier.Own {
		return false
	}
	if j.takesBack(latest) {
		return !latest.stands() && latest.status != common.StatusUninstalled
	}
	return latest.status.IsPending() && latest.progress() != nil
}

// takesBack tells whether a revision is there because the service as it should be was refused.
func (j *job) takesBack(latest *record) bool {
	return carrier.IsSealOf(latest.annotations[refusedAnnotation], j.attempt())
}

// attempt is what is not tried again when it was refused.
func (j *job) attempt() string { return j.service.Fingerprint + j.service.Attempt }

// underway looks at an operation that is gone on with, and plans the rest of it when the hook that it waits for has ended. An operation for what
// the service was before ends with its hook: another one follows.
func (j *job) underway(ctx context.Context, revisions records) (*carrier.Result, error) {
	latest, at := revisions.latest(), revisions.latest().progress()
	outcome, err := j.outcome(ctx, at)
	if err != nil {
		return nil, err
	}
	result := &carrier.Result{Found: j.found(latest), Health: carrier.Health{Phase: v1alpha1.ServiceStateProvisioning}}
	if outcome.waits != "" {
		result.Health.Message, result.Requeue = outcome.waits, outcome.left
		result.Found.Kinds = append(result.Found.Kinds, outcome.kinds...)
		return result, nil
	}
	if !j.takesBack(latest) && !j.service.Put(latest.annotations[fingerprintAnnotation]) {
		return j.renewal(ctx, revisions)
	}
	result.UnderWay = true
	err = j.planRest(ctx, revisions, outcome, result)
	if waits(err, result) {
		return result, nil
	}
	return result, err
}

// planRest plans what is left of an operation.
func (j *job) planRest(ctx context.Context, revisions records, outcome hookOutcome, result *carrier.Result) error {
	latest, at := revisions.latest(), revisions.latest().progress()
	going, err := j.load(ctx, latest)
	if err != nil {
		return err
	}
	todo := &goOn{release: going, revisions: revisions, at: at}
	j.hide(revisions, going)
	onItsWay(going.Release)
	result.Payload = todo
	status, end := going.Info.Status, common.StatusDeployed
	switch {
	case outcome.failed != nil:
		end = common.StatusFailed
	case status == common.StatusUninstalling:
		end = common.StatusUninstalled
	}
	description := "go on taking it back"
	if at != nil {
		description = fmt.Sprintf("go on after the hook %s", at.Event)
	}
	result.Changes = []plan.Change{j.releaseChange(plan.Update, description, plan.FieldChange{
		Path: "status", Old: string(latest.status), New: string(end),
	})}
	if before, _ := eventsOf(status); outcome.failed != nil || at != nil && at.Event != before {
		return nil
	}
	p := &planner{job: j}
	if err := j.planObjects(ctx, p, status, revisions[:len(revisions)-1], todo); err != nil {
		return err
	}
	result.Changes = append(result.Changes, p.changes...)
	result.Notes = append(result.Notes, p.stays...)
	return nil
}

// onItsWay makes a revision that has failed to take something back what it was before it failed.
func onItsWay(r *release.Release) {
	switch back := r.Info.RollbackRevision; {
	case r.Info.Status.IsPending() || r.Info.Status == common.StatusUninstalling:
	case back > 0:
		r.SetStatus(common.StatusPendingRollback, fmt.Sprintf("Rollback to %d", back))
	default:
		r.SetStatus(common.StatusUninstalling, r.Info.Description)
	}
}

// planObjects plans what becomes of the objects of a revision.
func (j *job) planObjects(ctx context.Context, p *planner, status common.Status, earlier records, todo *goOn) error {
	if status == common.StatusUninstalling {
		going, err := j.goingOf(todo.release.Manifest)
		if err != nil {
			return err
		}
		for _, u := range going {
			if _, err := p.remove(ctx, u); err != nil {
				return err
			}
		}
		return nil
	}
	objects, err := j.placed(todo.release.Manifest, nil, false)
	if err != nil {
		return err
	}
	p.known = carrier.DefinitionsIn(objects)
	if p.hooks, err = j.hooksOf(todo.release.Hooks); err != nil {
		return err
	}
	for _, u := range objects {
		if err := p.apply(ctx, u); err != nil {
			return err
		}
	}
	past, err := j.past(ctx, earlier)
	if err != nil {
		return err
	}
	todo.stale, err = p.removeStale(ctx, past.objects, objects)
	return err
}

// operation is what carries a revision out. Earlier are the revisions before.
func (j *job) operation(ctx context.Context, r *stored, earlier records) *operation {
	return &operation{job: j, ctx: ctx, release: r, earlier: earlier}
}

// goOn goes on with an operation.
func (j *job) goOn(ctx context.Context, todo *goOn) error {
	todo.release.secret = todo.revisions.latest().metadata().ObjectMeta
	// How it ends says anew whether it has failed.
	todo.release.annotate(map[string]string{failedAnnotation: ""})
	o := j.operation(ctx, todo.release, todo.revisions[:len(todo.revisions)-1])
	o.stale, o.at = todo.stale, todo.at
	status := todo.release.Info.Status
	err := o.run()
	if status == common.StatusPendingRollback || status == common.StatusUninstalling {
		return err
	}
	return j.rolled(ctx, err)
}

// rolled takes a revision back that could not be put there, if that is asked for.
func (j *job) rolled(ctx context.Context, err error) error {
	if err == nil || !j.options.atomic || !final(err) || ctx.Err() != nil {
		return err
	}
	return j.takeBackFailed(ctx, err)
}
