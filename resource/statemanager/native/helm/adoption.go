package helm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	release "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// adoption is the payload for a release that somebody else has made, and that is taken over as it is.
type adoption struct {
	revisions records
	// annotations are those that the latest revision gets: with a fingerprint, if it is what the service wants.
	annotations map[string]string
	// objects are those of the release and of its hooks, as they are.
	objects []*unstructured.Unstructured
}

// adopts tells whether a release of somebody else is to be taken over.
func (j *job) adopts(latest *record) bool {
	return j.service.Entry.Adopt && j.service.ClaimOn(latest.labels) == carrier.Unclaimed
}

// adoption plans that a release gets the marks of the service: nothing is installed, no other field of an object is written, and no hook is
// run. One that is not what the service wants is upgraded by the next computation.
func (j *job) adoption(ctx context.Context, revisions records) (*carrier.Result, error) {
	latest := revisions.latest()
	if !latest.stands() {
		return nil, fmt.Errorf("the Helm release %s can't be taken over while its latest revision, %d, is %s: roll it back, or upgrade it, until it is deployed: %w",
			j.service.Key, latest.revision, latest.status, carrier.ErrConflict)
	}
	found, err := j.load(ctx, latest)
	if err != nil {
		return nil, err
	}
	j.hide(revisions, found)
	rendering, err := j.render(ctx, latest.revision, latest.revision == 1)
	if err != nil {
		return nil, err
	}
	recorded, err := j.placed(found.Manifest, nil, true)
	if err != nil {
		return nil, err
	}
	hooks, err := j.hooksOf(found.Hooks)
	if err != nil {
		return nil, err
	}
	todo := &adoption{revisions: revisions, annotations: j.annotations(rendering)}
	todo.annotations[kindsAnnotation] = kindsOf(recorded)
	// It is not taken back, whatever its health is.
	todo.annotations[healthyAnnotation] = "true"
	note := "it is taken over as it is: it is what the service wants"
	if other := differing(found.Release, rendering, recorded); len(other) > 0 {
		for _, name := range []string{fingerprintAnnotation, templateAnnotation, versionAnnotation, secretAnnotation} {
			delete(todo.annotations, name)
		}
		note = "it is taken over as it is, and upgraded then, because the service wants something else: " + strings.Join(other, ", ")
	}
	result := &carrier.Result{Health: carrier.Health{Phase: v1alpha1.ServiceStateProvisioning}, Payload: todo, Notes: []string{note}}
	result.Changes = []plan.Change{j.releaseChange(plan.Update, "taken over as it is", plan.FieldChange{Path: "owner", New: j.service.Owner.String()})}
	for _, u := range append(recorded, hooks...) {
		if err := j.planMarks(ctx, u, todo, result); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// planMarks plans that an object of a release that is taken over gets the marks of the service. One that is not there is left out: the next
// look tells.
func (j *job) planMarks(ctx context.Context, u *unstructured.Unstructured, todo *adoption, result *carrier.Result) error {
	live, err := j.read(ctx, j.client, u)
	switch {
	case live == nil || err != nil:
		return err
	case live.GetDeletionTimestamp() != nil, isHook(u) && j.refuses(live) != nil:
		return nil
	case j.refuses(live) != nil:
		return j.refuses(live)
	case !isHook(u) && !j.owns(live):
		return fmt.Errorf("%s is in the release %s, but does not have its label %s=%s and its annotation %s: give it back to the release, or take it "+
			"out of it: %w", describe(live), j.service.Key, managedByLabel, managedByHelm, releaseNameAnnotation, carrier.ErrConflict)
	}
	marked := live.DeepCopy()
	carrier.Dress(marked, j.service)
	for _, change := range plan.Describe(plan.Update, marked, live) {
		if len(change.Fields) > 0 {
			change.Description = "taken over as it is"
			result.Changes = append(result.Changes, change)
		}
	}
	todo.objects = append(todo.objects, live)
	return nil
}

// releaseField is a field that whoever writes an object for a release has.
var releaseField = []string{"f:metadata", "f:annotations", "f:" + releaseNameAnnotation}

// takeOver gives a release of somebody else, as it was seen, the marks of the service, the latest revision last: it says whose the release is.
// What the former field managers have applied is Helm's from then on, so that an upgrade takes away what its chart does not have any more.
func (j *job) takeOver(ctx context.Context, todo *adoption) error {
	for _, u := range todo.objects {
		err := carrier.TakeOver(ctx, j.client, j.service, u, carrier.ManagersWith(u, fieldManager, releaseField), fieldManager)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("take over %s: %w", describe(u), err)
		}
	}
	latest := todo.revisions.latest()
	if err := j.adopt(ctx, todo.revisions[:len(todo.revisions)-1]); err != nil {
		return err
	}
	if err := j.tag(ctx, latest.metadata(), carrier.LabelsOf(j.service), todo.annotations); err != nil {
		return fmt.Errorf("take over revision %d: %w", latest.revision, err)
	}
	return nil
}

// differing names what the service wants otherwise than a release has it: the chart, and objects.
func differing(found *release.Release, wanted *rendering, recorded []*unstructured.Unstructured) (names []string) {
	if found.Chart == nil || found.Chart.Metadata == nil || found.Chart.Metadata.Name != wanted.chart.Metadata.Name ||
		found.Chart.Metadata.Version != wanted.chart.Metadata.Version {
		names = append(names, fmt.Sprintf("chart %s %s", wanted.chart.Metadata.Name, wanted.chart.Metadata.Version))
	}
	has := map[carrier.Identity]*unstructured.Unstructured{}
	for _, u := range recorded {
		has[carrier.IdentityOf(u)] = u
	}
	for _, u := range wanted.objects {
		if was := has[carrier.IdentityOf(u)]; was == nil || !equality.Semantic.DeepEqual(unlabelled(was).Object, unlabelled(u).Object) {
			names = append(names, describe(u))
		}
	}
	for _, u := range without(recorded, wanted.objects) {
		names = append(names, describe(u)+", which goes")
	}
	if more := len(names) - maxNamed; more > 0 {
		names = append(names[:maxNamed], fmt.Sprintf("%d more", more))
	}
	return names
}

// maxNamed is how many objects a note names.
const maxNamed = 5

// originLabels are those that Flux puts on all objects of a release, whatever its chart is.
var originLabels = []string{"helm.toolkit.fluxcd.io/name", "helm.toolkit.fluxcd.io/namespace"}

// unlabelled returns an object without what says who has made its release.
func unlabelled(u *unstructured.Unstructured) *unstructured.Unstructured {
	labels := u.GetLabels()
	if !slices.ContainsFunc(originLabels, func(name string) bool { _, ok := labels[name]; return ok }) {
		return u
	}
	plain := u.DeepCopy()
	for _, name := range originLabels {
		delete(labels, name)
	}
	if len(labels) == 0 {
		labels = nil
	}
	plain.SetLabels(labels)
	return plain
}
