package helm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"helm.sh/helm/v4/pkg/release/common"
	release "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/internal/absent"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// takeBack is the payload for a revision that is to be taken back: to an earlier one, or to nothing.
type takeBack struct {
	to        *record
	reason    string
	revisions records
	// stale are objects of the revision that are not in the earlier one.
	stale []*unstructured.Unstructured
}

// CarryOut implements carrier.Carrier.
func (c *Carrier) CarryOut(ctx context.Context, cluster carrier.Cluster, service *carrier.Service, result *carrier.Result) error {
	j := c.job(cluster, nil, service)
	var err error
	switch todo := result.Payload.(type) {
	case *renew:
		err = j.renew(ctx, todo)
	case *goOn:
		err = j.goOn(ctx, todo)
	case *correct:
		err = j.correct(ctx, todo)
	case *takeBack:
		err = j.takeBack(ctx, todo)
	case *adoption:
		err = j.takeOver(ctx, todo)
	case *uninstall:
		err = j.uninstall(ctx, todo)
	case *purge:
		err = j.purge(ctx, todo)
	default:
		return fmt.Errorf("release %s: there is nothing to carry out", service.Key)
	}
	if err != nil && !errors.Is(err, errBegun) {
		return j.hider.Error(fmt.Errorf("release %s: %w", service.Key, err))
	}
	return nil
}

// annotations are those of the revisions that are made.
func (j *job) annotations(r *rendering) map[string]string {
	version := r.chart.Metadata.Version
	if v := j.service.Entry.Version; v != "" {
		version = v
	}
	annotations := map[string]string{
		timeoutAnnotation:   j.options.timeout.String(),
		ownerNameAnnotation: j.service.Owner.Namespace + "/" + j.service.Owner.Name, ownerUIDAnnotation: string(j.service.Owner.UID),
		carrier.OwnerAnnotation: j.service.Owner.String(), templateAnnotation: j.service.Entry.Template, versionAnnotation: version,
		fingerprintAnnotation: carrier.Seal(j.service.Fingerprint), kindsAnnotation: kindsOf(r.objects),
		secretAnnotation: formatMarks(j.service.Secret),
	}
	if j.options.disableHooks {
		annotations[hooksAnnotation] = "disabled"
	}
	return annotations
}

// renew makes a new revision.
func (j *job) renew(ctx context.Context, todo *renew) error {
	if todo.namespace != nil {
		if err := j.createNamespace(ctx, todo.namespace.DeepCopy()); err != nil {
			return fmt.Errorf("create the namespace: %w", err)
		}
	}
	for _, definition := range todo.rendering.applied {
		applied := definition.DeepCopy()
		if err := j.put(ctx, applied, j.refusesOthers); err != nil {
			return err
		}
		if err := j.established(ctx, applied); err != nil {
			return err
		}
	}
	for _, u := range todo.later {
		// Nothing else is touched before a refusal.
		err := carrier.Retry(ctx, func() error { return j.applyObject(ctx, u.DeepCopy(), client.DryRunAll) })
		if carrier.Refused(err) {
			return err
		}
	}
	annotations := j.annotations(todo.rendering)
	annotations[installedAnnotation] = strconv.FormatBool(!installs(todo.revisions))
	if latest := todo.revisions.latest(); latest != nil && j.inherits(latest) {
		if err := j.adopt(ctx, todo.revisions); err != nil {
			return err
		}
		var err error
		if todo.revisions, err = recordsOf(ctx, j.client, j.service.Key); err != nil {
			return err
		}
	}
	if err := j.mend(ctx, todo.revisions); err != nil {
		return err
	}
	for _, hook := range todo.hooks {
		if err := j.tag(ctx, hook, map[string]any{managedByLabel: managedByHelm}, j.releaseAnnotations()); err != nil {
			return fmt.Errorf("make what the hook %s has left an object of the release: %w", describe(hook), err)
		}
	}
	recorded, err := j.begin(ctx, todo.release, annotations, func(r *record) error { return j.forget(ctx, todo, r.secret.Name) })
	if err != nil {
		return err
	}
	o := j.operation(ctx, recorded, todo.revisions)
	o.known, o.stale = todo.rendering.definitions, todo.stale
	return j.rolled(ctx, o.run())
}

// createNamespace creates the namespace of the release. Others may create one with nothing in it at the same time; one that is the release's must
// not be there.
func (j *job) createNamespace(ctx context.Context, namespace *unstructured.Unstructured) error {
	if j.owns(namespace) {
		namespace.SetResourceVersion(absent.Version)
		return j.applyObject(ctx, namespace)
	}
	err := j.client.Create(ctx, namespace, client.FieldOwner(fieldManager))
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// begin records a revision as pending, and makes room for it in the history before, as Helm does: the oldest revisions go, but not the one that
// stands. forget is called before one is deleted.
func (j *job) begin(ctx context.Context, r *release.Release, annotations map[string]string, forget func(*record) error) (*stored, error) {
	revisions, err := recordsOf(ctx, j.client, j.service.Key)
	if err != nil {
		return nil, err
	}
	standing, tooMany := revisions.standing(), len(revisions)-j.config.History+1
	for i := 0; i < len(revisions) && tooMany > 0; i++ {
		old := &revisions[i]
		if old == standing {
			continue
		}
		if err := forget(old); err != nil {
			return nil, err
		}
		if err := j.deleteRecord(ctx, old); err != nil {
			return nil, err
		}
		tooMany--
	}
	r.Info.LastDeployed = time.Now()
	if r.Info.FirstDeployed.IsZero() {
		r.Info.FirstDeployed = r.Info.LastDeployed
	}
	return j.create(ctx, r, annotations)
}

// forget deletes what is not wanted any more and only a revision tells of that is about to be deleted.
func (j *job) forget(ctx context.Context, todo *renew, secret string) error {
	stale := without(todo.left[secret], todo.rendering.objects)
	delete(todo.left, secret)
	for _, objects := range todo.left {
		stale = without(stale, objects)
	}
	for _, u := range stale {
		if err := j.deleteOwn(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

// mend marks a revision as failed that was left in the middle, and one that was uninstalled as superseded, so that another one can follow.
func (j *job) mend(ctx context.Context, revisions records) error {
	latest := revisions.latest()
	if latest == nil || !latest.status.IsPending() && latest.status != common.StatusUninstalling && latest.status != common.StatusUninstalled {
		return nil
	}
	left, err := j.load(ctx, latest)
	if err != nil {
		return err
	}
	status, description := common.StatusFailed, "it was interrupted in "+string(latest.status)
	if latest.status == common.StatusUninstalled {
		status, description = common.StatusSuperseded, "superseded by new release"
	}
	left.SetStatus(status, description)
	if err := j.update(ctx, left); err != nil {
		return fmt.Errorf("mark revision %d as %s: %w", latest.revision, status, err)
	}
	return nil
}

// adopt puts the owner on all revisions, the latest last: it says whose the release is.
func (j *job) adopt(ctx context.Context, revisions records) error {
	for _, r := range revisions {
		annotations := map[string]any{
			ownerNameAnnotation: j.service.Owner.Namespace + "/" + j.service.Owner.Name, ownerUIDAnnotation: string(j.service.Owner.UID),
			carrier.OwnerAnnotation: j.service.Owner.String(),
		}
		if err := j.tag(ctx, r.metadata(), carrier.LabelsOf(j.service), annotations); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("take over revision %d: %w", r.revision, err)
		}
	}
	return nil
}

// tag adds labels and annotations to an object, if it is still as it was seen.
func (j *job) tag(ctx context.Context, seen *metav1.PartialObjectMetadata, labels, annotations any) error {
	return j.client.Patch(ctx, seen.DeepCopy(), carrier.Marking(seen, seen.ResourceVersion, labels, annotations), client.FieldOwner(fieldManager))
}

// correct applies objects again as the release has them.
func (j *job) correct(ctx context.Context, todo *correct) error {
	for _, u := range todo.objects {
		if err := j.put(ctx, u.DeepCopy(), j.refuses); err != nil {
			return err
		}
	}
	for _, hook := range todo.hooks {
		err := j.tag(ctx, hook, carrier.LabelsOf(j.service), map[string]any{carrier.OwnerAnnotation: j.service.Owner.String()})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("take over what the hook %s has left: %w", describe(hook), err)
		}
	}
	if len(todo.adopted) > 0 {
		return j.adopt(ctx, todo.adopted)
	}
	if todo.marked == nil {
		return nil
	}
	if err := j.tag(ctx, todo.marked.metadata(), nil, todo.marks); err != nil {
		return fmt.Errorf("mark revision %d: %w", todo.marked.revision, err)
	}
	return nil
}

// takeBackFailed takes back a revision that could not be put there, and returns why it could not.
func (j *job) takeBackFailed(ctx context.Context, cause error) error {
	revisions, err := recordsOf(ctx, j.client, j.service.Key)
	if err != nil {
		return errors.Join(cause, err)
	}
	if latest := revisions.latest(); latest == nil || latest.status != common.StatusFailed {
		return cause
	}
	todo := &takeBack{to: lastGood(revisions), reason: j.hider.Text(cause.Error()), revisions: revisions}
	if todo.to != nil {
		if todo.stale, err = j.staleAfter(ctx, revisions.latest(), todo.to); err != nil {
			return errors.Join(cause, fmt.Errorf("take it back: %w", err))
		}
	}
	switch err := j.takeBack(ctx, todo); {
	case errors.Is(err, errBegun):
		return cause
	case err != nil:
		return errors.Join(cause, fmt.Errorf("take it back: %w", err))
	}
	return framework.Permanent(cause)
}

// takeBack rolls back to an earlier revision, or uninstalls the first one, and remembers what was taken back.
func (j *job) takeBack(ctx context.Context, todo *takeBack) error {
	refusal := map[string]string{refusedAnnotation: carrier.Seal(j.attempt()), refusalAnnotation: todo.reason}
	if todo.to == nil {
		return j.uninstallKeeping(ctx, nil, refusal)
	}
	annotations := maps.Clone(todo.to.annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, refusal)
	annotations[healthyAnnotation], annotations[installedAnnotation] = "true", "true"
	if err := j.mend(ctx, todo.revisions); err != nil {
		return err
	}
	if err := j.rollBack(ctx, todo, annotations); err != nil {
		return fmt.Errorf("roll back to revision %d: %w", todo.to.revision, err)
	}
	return nil
}

// rollBack puts an earlier revision there as a new one.
func (j *job) rollBack(ctx context.Context, todo *takeBack, annotations map[string]string) error {
	latest, err := j.load(ctx, todo.revisions.latest())
	if err != nil {
		return err
	}
	good, err := j.load(ctx, todo.to)
	if err != nil {
		return err
	}
	back := *good.Release
	back.Version, back.ApplyMethod = latest.Version+1, string(release.ApplyMethodServerSideApply)
	back.Info = &release.Info{
		FirstDeployed: latest.Info.FirstDeployed, Notes: good.Info.Notes, RollbackRevision: todo.to.revision,
		Status: common.StatusPendingRollback, Description: fmt.Sprintf("Rollback to %d", todo.to.revision),
	}
	recorded, err := j.begin(ctx, &back, annotations, func(*record) error { return nil })
	if err != nil {
		return err
	}
	j.hide(todo.revisions, recorded)
	o := j.operation(ctx, recorded, todo.revisions)
	o.stale = todo.stale
	return o.run()
}

// uninstallKeeping uninstalls and keeps the revisions, with annotations on the latest, which is read unless it is still as it was.
func (j *job) uninstallKeeping(ctx context.Context, was *stored, annotations map[string]string) error {
	revisions, err := recordsOf(ctx, j.client, j.service.Key)
	if err != nil {
		return err
	}
	latest := revisions.latest()
	if latest == nil || latest.status == common.StatusUninstalled {
		return nil
	}
	if !j.has(latest) {
		return j.foreign(revisions)
	}
	j.options.rememberFrom(latest)
	going := was
	if going == nil || going.secret.ResourceVersion != latest.version {
		if going, err = j.load(ctx, latest); err != nil {
			return err
		}
	}
	going.annotate(annotations)
	o := j.operation(ctx, going, revisions[:len(revisions)-1])
	if latest.status == common.StatusUninstalling {
		o.at = latest.progress()
	}
	going.SetStatus(common.StatusUninstalling, "Deletion in progress (or silently failed)")
	going.Info.Deleted = o.now()
	if err := o.run(); err != nil {
		return fmt.Errorf("uninstall: %w", err)
	}
	return nil
}

// uninstall deletes the objects of a release.
func (j *job) uninstall(ctx context.Context, todo *uninstall) error {
	j.seen = todo.seen
	if j.seen == nil {
		j.seen = map[carrier.Identity]*metav1.PartialObjectMetadata{}
	}
	if err := j.uninstallKeeping(ctx, todo.latest, nil); err != nil {
		return err
	}
	// Helm looks at the latest revision only.
	for _, u := range todo.objects {
		if j.seen[carrier.IdentityOf(u)] == nil {
			continue
		}
		if err := j.deleteOwn(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

// purge removes what tells of a release, the latest revision last.
func (j *job) purge(ctx context.Context, todo *purge) error {
	j.seen = todo.seen
	for _, u := range todo.hooks {
		if j.seen[carrier.IdentityOf(u)] == nil {
			continue
		}
		if err := j.deleteHook(ctx, u); err != nil {
			return err
		}
	}
	for _, r := range todo.revisions {
		if err := j.deleteRecord(ctx, &r); err != nil {
			return err
		}
	}
	return nil
}

// deleteRecord deletes a revision as it was seen.
func (j *job) deleteRecord(ctx context.Context, r *record) error {
	preconditions := client.Preconditions{UID: &r.uid, ResourceVersion: &r.version}
	if err := client.IgnoreNotFound(j.client.Delete(ctx, r.metadata(), preconditions)); err != nil {
		return fmt.Errorf("delete revision %d: %w", r.revision, err)
	}
	return nil
}
