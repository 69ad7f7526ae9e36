package helm

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/release/common"
	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// uninstall is the payload for a release whose objects are to be deleted: those that were seen, and no other ones.
type uninstall struct {
	objects []*unstructured.Unstructured
	seen    map[carrier.Identity]*metav1.PartialObjectMetadata
	// latest is the latest revision; nil if it can't be read.
	latest *stored
}

// purge is the payload for a release whose objects are gone: what is left are hooks and revisions.
type purge struct {
	revisions records
	hooks     []*unstructured.Unstructured
	seen      map[carrier.Identity]*metav1.PartialObjectMetadata
}

// removal plans that a release goes: first its objects, and when they are gone, what tells of it.
func (j *job) removal(ctx context.Context, revisions records) (*carrier.Result, error) {
	latest := revisions.latest()
	if latest == nil || !slices.Contains(j.service.Owner.IDs(j.service.Former), latest.labels[carrier.OwnerLabel]) {
		result := &carrier.Result{Health: carrier.Health{Phase: v1alpha1.ServiceStateDeleted}}
		if latest != nil && j.service.ClaimOn(latest.labels) == carrier.Foreign {
			result.Notes = []string{fmt.Sprintf("the Helm release %s stays, because it belongs to %s", j.service.Key, revisions.whose())}
		}
		return result, nil
	}
	j.options.rememberFrom(latest)
	result := &carrier.Result{Found: j.found(latest), Health: carrier.Health{Phase: v1alpha1.ServiceStateDeleting}}
	if at := latest.progress(); at != nil && latest.status == common.StatusUninstalling {
		result.UnderWay = true
		outcome, err := j.outcome(ctx, at)
		if err != nil {
			return nil, err
		}
		if outcome.waits != "" {
			result.Health.Message, result.Requeue = outcome.waits, outcome.left
			result.Found.Kinds = append(result.Found.Kinds, outcome.kinds...)
			return result, nil
		}
	}
	left, err := j.leftovers(ctx, latest)
	if err != nil {
		return nil, err
	}
	switch {
	case !j.options.disableHooks:
		result.Notes = append(result.Notes, left.notes...)
	case j.service.Unknown && len(left.notes) > 0:
		result.Notes = append(result.Notes, fmt.Sprintf("the hooks of the Helm release %s are not run, because only the cluster says whose it is", j.service.Key))
	}
	p, going := &planner{job: j}, ""
	for _, u := range left.objects {
		live, err := p.own(ctx, u)
		switch {
		case err != nil:
			return nil, err
		case live == nil:
		case live.DeletionTimestamp != nil:
			going = cmp.Or(going, describe(u))
		default:
			if _, err := p.deletes(ctx, u, live); err != nil {
				return nil, err
			}
		}
	}
	if result.Notes = append(result.Notes, p.stays...); latest.status != common.StatusUninstalled || len(p.changes) > 0 {
		p.changes = append(p.changes, j.releaseChange(plan.Update, "uninstall", plan.FieldChange{
			Path: "status", Old: string(latest.status), New: string(common.StatusUninstalled),
		}))
		result.Changes, result.Payload = p.changes, &uninstall{objects: left.objects, seen: p.seen, latest: left.latest}
		return result, nil
	}
	if going != "" {
		result.Health.Message, result.Requeue = fmt.Sprintf("waits until %s is gone", going), retryWaiting
		return result, nil
	}
	p.stays = nil
	for _, u := range left.hooks {
		if _, err := p.removeHook(ctx, u); err != nil {
			return nil, err
		}
	}
	result.Notes = append(result.Notes, p.stays...)
	p.changes = append(p.changes, j.releaseChange(plan.Delete, ""))
	result.Changes = p.changes
	result.Payload = &purge{revisions: revisions, hooks: left.hooks, seen: p.seen}
	return result, nil
}

// leftovers are what the revisions of a release may have on the cluster.
type leftovers struct {
	objects, hooks []*unstructured.Unstructured
	// notes tell which hooks of the latest revision are run.
	notes []string
	// latest is the latest revision; nil if it can't be read.
	latest *stored
}

// leftovers reads them, in the order in which they are deleted.
func (j *job) leftovers(ctx context.Context, latest *record) (leftovers, error) {
	history, err := j.history(ctx)
	if err != nil {
		return leftovers{}, err
	}
	var left leftovers
	for i := len(history) - 1; i >= 0; i-- {
		if history[i].Version == latest.revision {
			left.latest = history[i]
		}
		objects, err := j.goingOf(history[i].Manifest)
		if err != nil {
			return leftovers{}, err
		}
		left.objects = append(left.objects, without(objects, left.objects)...)
		hooks, err := j.hooksOf(history[i].Hooks)
		if err != nil {
			return leftovers{}, err
		}
		left.hooks = append(left.hooks, without(hooks, left.hooks)...)
	}
	if len(history) > 0 {
		left.notes = hookNotes(history[len(history)-1].Hooks, release.HookPreDelete, release.HookPostDelete)
	}
	return left, nil
}

// goingOf returns the objects in the manifest of a release, in the order in which Helm deletes them.
func (j *job) goingOf(manifest string) ([]*unstructured.Unstructured, error) {
	_, documents, err := releaseutil.SortManifests(releaseutil.SplitManifests(manifest), nil, releaseutil.UninstallOrder)
	if err != nil {
		return nil, fmt.Errorf("read the manifest of the release: %w", err)
	}
	var ordered strings.Builder
	for _, d := range documents {
		ordered.WriteString("---\n" + d.Content + "\n")
	}
	return j.placed(ordered.String(), nil, true)
}

// hooksOf returns the objects of hooks, but for definitions.
func (j *job) hooksOf(of []*release.Hook) ([]*unstructured.Unstructured, error) {
	var hooks []*unstructured.Unstructured
	for _, h := range of {
		objects, err := j.placed(h.Manifest, nil, true)
		if err != nil {
			return nil, err
		}
		for _, u := range objects {
			if u.GroupVersionKind().GroupKind() != carrier.DefinitionKind {
				hooks = append(hooks, u)
			}
		}
	}
	return hooks, nil
}
