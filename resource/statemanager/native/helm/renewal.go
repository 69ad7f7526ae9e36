package helm

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/release/common"
	release "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/internal/serverside"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// retryWaiting is how long it takes until something that is waited for, and not watched, is looked for again.
const retryWaiting = 10 * time.Second

var namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")

// renew is the payload for a revision that is to be made.
type renew struct {
	rendering *rendering
	// release is the revision, without its times.
	release   *release.Release
	revisions records
	// namespace is that of the release where it is to be created: the one that the chart renders, or one with nothing in it.
	namespace *unstructured.Unstructured
	// later are objects to be tried out when the namespace and the definitions of crds/ are there.
	later []*unstructured.Unstructured
	// stale are objects that earlier revisions have left behind.
	stale []*unstructured.Unstructured
	// hooks are what hooks have left that becomes objects of the release.
	hooks []*metav1.PartialObjectMetadata
	// left is what each of them may have left, by the name of its Secret.
	left map[string][]*unstructured.Unstructured
}

// renewal plans a new revision: an installation or an upgrade.
func (j *job) renewal(ctx context.Context, revisions records) (*carrier.Result, error) {
	result := &carrier.Result{Health: carrier.Health{Phase: v1alpha1.ServiceStateProvisioning}}
	latest := revisions.latest()
	if latest != nil && j.has(latest) {
		result.Found = j.found(latest)
	}
	err := j.planRenewal(ctx, revisions, result)
	if waits(err, result) {
		return result, nil
	}
	if err != nil {
		if j.leftHalfway(latest) && (final(err) || carrier.Refused(err)) {
			back := &carrier.Result{Found: result.Found, Health: carrier.Health{Phase: v1alpha1.ServiceStateFailed, Message: j.hider.Text(err.Error())}}
			if j.planTakeBack(ctx, revisions, back) == nil {
				return back, nil
			}
		}
		return j.stays(ctx, latest, result), err
	}
	if failure := j.service.Failure; failure != nil {
		result.Health = carrier.Health{Phase: v1alpha1.ServiceStateFailed, Message: failure.Message}
	}
	return result, nil
}

// leftHalfway reports whether a revision is there in part, and is not to stay so.
func (j *job) leftHalfway(latest *record) bool {
	return j.options.atomic && latest != nil && j.service.ClaimOn(latest.labels) == carrier.Own && latest.made() &&
		(latest.status == common.StatusFailed || latest.status.IsPending())
}

// stays tells how a release is that stays as it is, because it can't be worked out what it should be.
func (j *job) stays(ctx context.Context, latest *record, result *carrier.Result) *carrier.Result {
	if latest == nil || !j.has(latest) || !latest.stands() {
		return result
	}
	if seen, err := j.look(ctx, latest); err == nil {
		result.Drift = seen.drift
		result.Health, result.Requeue = j.healthOf(seen.conditions, seen.applied)
	}
	return result
}

func (j *job) planRenewal(ctx context.Context, revisions records, result *carrier.Result) error {
	if err := chartutil.ValidateReleaseName(j.service.Key.Name); err != nil {
		return framework.Permanent(fmt.Errorf("release name %q: %w", j.service.Key.Name, err))
	}
	create, err := j.namespace(ctx)
	if err != nil {
		return err
	}
	next, install := 1, installs(revisions)
	if latest := revisions.latest(); latest != nil {
		next = latest.revision + 1
	}
	rendering, err := j.render(ctx, next, install)
	if err != nil {
		if rendering != nil {
			result.Notes = rendering.remarks
		}
		return err
	}
	past, err := j.past(ctx, revisions)
	if err != nil {
		return err
	}
	todo := &renew{rendering: rendering, release: j.next(next, install, past, rendering), revisions: revisions, left: past.left}
	if err := checkSize(todo.release); err != nil {
		return err
	}
	p := &planner{job: j, fresh: create, known: append(slices.Clone(rendering.definitions), carrier.DefinitionsIn(rendering.objects)...)}
	if create {
		todo.namespace = j.namespaceOf(rendering.objects)
		p.changes = append(p.changes, plan.Describe(plan.Create, todo.namespace, nil)...)
	}
	p.changes = append(p.changes, rendering.defining...)
	for _, definition := range rendering.applied {
		p.expect(definition, true)
	}
	p.changes = append(p.changes, j.planRelease(revisions, past, rendering))
	for _, u := range rendering.objects {
		if create && carrier.IdentityOf(u) == carrier.IdentityOf(todo.namespace) {
			continue
		}
		if err := p.apply(ctx, u); err != nil {
			return err
		}
	}
	if !j.options.disableHooks {
		if err := p.checkHooks(ctx, rendering.hooks, hookEvents(revisions)...); err != nil {
			return err
		}
	}
	todo.later = p.later
	if p.hooks, err = j.hooksOf(rendering.hooks); err != nil {
		return err
	}
	if todo.stale, err = p.removeStale(ctx, past.objects, rendering.objects); err != nil {
		return err
	}
	todo.hooks = p.left
	result.Changes, result.Payload = p.changes, todo
	result.Notes = append(j.notes(revisions, rendering), p.stays...)
	return nil
}

// past is what earlier revisions of a release were made from and have left on the cluster.
type past struct {
	last    *stored
	objects []*unstructured.Unstructured
	// left are the objects of each revision, by the name of its Secret.
	left map[string][]*unstructured.Unstructured
	// secret marks the values that come from Secrets, or did.
	secret map[string]any
}

// past reads the revisions from the last one that was deployed on: what they have put there may be there still.
func (j *job) past(ctx context.Context, revisions records) (past, error) {
	p := past{secret: j.service.Secret, left: map[string][]*unstructured.Unstructured{}}
	latest := revisions.latest()
	if latest == nil || latest.status == common.StatusUninstalled {
		return p, nil
	}
	var releases []*stored
	for _, r := range slices.Backward(revisions) {
		found, err := j.load(ctx, &r)
		if err != nil {
			return past{}, err
		}
		releases = append(releases, found)
		objects, err := j.placed(found.Manifest, nil, true)
		if err != nil {
			return past{}, err
		}
		p.objects = append(p.objects, objects...)
		p.left[r.secret.Name] = objects
		if p.last == nil || r.stands() {
			p.last = found
		}
		if r.stands() || r.status == common.StatusSuperseded && r.annotations[failedAnnotation] == "" {
			break
		}
	}
	p.secret = j.hide(revisions, releases...)
	return p, nil
}

// next is the next revision of the release, as Helm records it before anything of it is put there. Its times are those of the recording, but
// for when the release was deployed first.
func (j *job) next(revision int, install bool, past past, rendering *rendering) *release.Release {
	r := &release.Release{
		Name: j.service.Key.Name, Namespace: j.service.Key.Namespace, Version: revision, Labels: j.options.labels,
		Chart: rendering.chart, Config: j.service.Values, Manifest: rendering.manifest(), Hooks: rendering.hooks,
		ApplyMethod: string(release.ApplyMethodServerSideApply), Info: &release.Info{Notes: rendering.notes},
	}
	if install {
		r.SetStatus(common.StatusPendingInstall, "Initial install underway")
		return r
	}
	r.SetStatus(common.StatusPendingUpgrade, "Preparing upgrade")
	r.Info.FirstDeployed = past.last.Info.FirstDeployed
	return r
}

// namespaceOf is the namespace of a release that is to be created: the one among its objects, which is the release's, or else one that stays
// when the release goes.
func (j *job) namespaceOf(objects []*unstructured.Unstructured) *unstructured.Unstructured {
	namespace := &unstructured.Unstructured{}
	namespace.SetGroupVersionKind(namespaceKind)
	namespace.SetName(j.service.Key.Namespace)
	for _, u := range objects {
		if carrier.IdentityOf(u) == carrier.IdentityOf(namespace) {
			return j.dressed(u)
		}
	}
	// The label is Helm's.
	namespace.SetLabels(map[string]string{"name": j.service.Key.Namespace})
	return namespace
}

// planDefinitions plans the definitions in crds/: those that are not there, and those that came with the same service.
func (j *job) planDefinitions(ctx context.Context, r *rendering) error {
	p := &planner{job: j}
	for _, definition := range r.definitions {
		desired := definition.DeepCopy()
		carrier.Dress(desired, j.service)
		live := emptyOf(desired)
		err := j.client.Get(ctx, client.ObjectKeyFromObject(desired), live)
		switch {
		case apierrors.IsNotFound(err):
			p.changes = append(p.changes, plan.Describe(plan.Create, desired, nil)...)
		case err != nil:
			return fmt.Errorf("read %s: %w", describe(desired), err)
		case !j.service.Has(live.GetLabels()):
			if !serverside.Covers(live.Object["spec"], definition.Object["spec"]) {
				r.remarks = append(r.remarks,
					fmt.Sprintf("%s is not from this service, and stays as it is: that of the chart is another one", describe(live)))
			}
			continue
		default:
			before := len(p.changes)
			if err := p.update(ctx, desired, live); err != nil {
				return err
			}
			if len(p.changes) == before && carrier.Unknown(j.mapper, carrier.ServedBy(desired)) == nil {
				continue
			}
		}
		r.applied = append(r.applied, desired)
	}
	r.defining = p.changes
	return nil
}

// planRelease tells what is new about the release itself.
func (j *job) planRelease(revisions records, past past, rendering *rendering) plan.Change {
	metadata := rendering.chart.Metadata
	after := map[string]any{"chart": metadata.Name, "version": metadata.Version, "template": j.service.Entry.Template}
	action, before, values := plan.Create, map[string]any{}, map[string]any{}
	if past.last != nil {
		action, values = plan.Update, past.last.Config
		if c := past.last.Chart; c != nil && c.Metadata != nil {
			before["chart"], before["version"] = c.Metadata.Name, c.Metadata.Version
		}
		if name := revisions.latest().annotations[templateAnnotation]; name != "" {
			before["template"] = name
		}
	}
	fields := plan.Diff(before, after)
	fields = append(fields, valueChanges(j.hider, values, j.service.Values, past.secret)...)
	description := "upgrade"
	if installs(revisions) {
		description = "install"
	}
	return j.releaseChange(action, description, fields...)
}

// notes tells what the changes don't.
func (j *job) notes(revisions records, rendering *rendering) []string {
	notes := slices.Clone(rendering.remarks)
	if latest := revisions.latest(); latest != nil && j.inherits(latest) {
		notes = append(notes, "it is taken over from "+revisions.whose())
	}
	if latest := revisions.latest(); latest != nil && (latest.status.IsPending() || latest.status == common.StatusUninstalling) {
		notes = append(notes, fmt.Sprintf("revision %d was left %s: it is marked as failed and followed by another one", latest.revision, latest.status))
	}
	if !j.options.disableHooks {
		notes = append(notes, hookNotes(rendering.hooks, hookEvents(revisions)...)...)
	}
	return notes
}

// hookEvents are those at which the hooks of the next revision are run.
func hookEvents(revisions records) []release.HookEvent {
	if installs(revisions) {
		return []release.HookEvent{release.HookPreInstall, release.HookPostInstall}
	}
	return []release.HookEvent{release.HookPreUpgrade, release.HookPostUpgrade}
}

// installs reports whether the next revision is an installation, and not an upgrade. An installation that failed or was interrupted is
// followed by another one, so that no hook of it is left out. Of a revision that does not say whether there has been an installation, such
// as that of somebody's helm, the status of it and of those before it says so.
func installs(revisions records) bool {
	latest := revisions.latest()
	if latest == nil || latest.status == common.StatusUninstalled {
		return true
	}
	if installed := latest.annotations[installedAnnotation]; installed != "" {
		return installed == "false"
	}
	return !slices.ContainsFunc(revisions, func(r record) bool { return r.stands() || r.status == common.StatusSuperseded })
}

// hookNotes tells which hooks are run at these events.
func hookNotes(hooks []*release.Hook, events ...release.HookEvent) []string {
	var notes []string
	for _, event := range events {
		for _, h := range hooks {
			switch {
			case !slices.Contains(h.Events, event):
			case h.Name == "" && !strings.HasSuffix(h.Kind, "List"):
				notes = append(notes, fmt.Sprintf("passes over the hook %s of %s: its %s has no name", event, h.Path, h.Kind))
			default:
				notes = append(notes, fmt.Sprintf("runs the hook %s: %s %s", event, h.Kind, h.Name))
			}
		}
	}
	return notes
}
