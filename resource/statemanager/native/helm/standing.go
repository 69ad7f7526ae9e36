package helm

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"helm.sh/helm/v4/pkg/release/common"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// correct is the payload for objects that are to be applied again as the release has them.
type correct struct {
	objects []*unstructured.Unstructured
	// hooks are what hooks have left behind, which gets a new owner, and adopted are the revisions that do afterwards.
	hooks   []*metav1.PartialObjectMetadata
	adopted records
	// healthy is the revision that is marked as healthy afterwards, if any.
	healthy *record
}

// standing looks at a release that is as it should be: at its health, at its drift, and whether another owner has it.
func (j *job) standing(ctx context.Context, revisions records) (*carrier.Result, error) {
	latest := revisions.latest()
	result := &carrier.Result{Found: latest.found(j.service.Owner.Keeper)}
	seen, err := j.look(ctx, latest)
	if message, waits := waitsFor(err); waits {
		result.Health, result.Requeue = carrier.Health{Phase: v1alpha1.ServiceStateProvisioning, Message: message}, retryWaiting
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
	return result, nil
}

// planAdoption plans that a release, which stands for another service set or under a former name, gets its owner's marks as it is:
// nothing is installed again, and no hook is run.
func (j *job) planAdoption(ctx context.Context, revisions records, seen *view, result *carrier.Result) error {
	todo := &correct{adopted: revisions}
	// Other marks are no drift, and the next look tells of what else differs.
	result.Drift = nil
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
		result.Payload = &correct{healthy: latest}
		result.Changes = []plan.Change{j.releaseChange(plan.Update, "", plan.FieldChange{Path: "healthy", New: true})}
	case v1alpha1.ServiceStateFailed:
		return result, j.planTakeBack(ctx, revisions, result)
	}
	return result, nil
}

// planTakeBack plans to take back the latest revision.
func (j *job) planTakeBack(ctx context.Context, revisions records, result *carrier.Result) error {
	todo := &takeBack{reason: j.hider.text(result.Health.Message), to: lastGood(revisions)}
	store, err := newStore(j.access, j.service.Key.Namespace, nil)
	if err != nil {
		return err
	}
	latest, err := store.get(j.service.Key.Name, revisions.latest().revision)
	if err != nil {
		return err
	}
	p := &planner{job: j}
	var current, back []*unstructured.Unstructured
	if todo.to != nil {
		good, err := store.get(j.service.Key.Name, todo.to.revision)
		if err != nil {
			return err
		}
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
	for _, u := range without(current, back) {
		if _, err := p.remove(ctx, u); err != nil {
			return err
		}
	}
	result.Changes, result.Payload = p.changes, todo
	return nil
}

// lastGood returns the revision before the latest that was deployed, or nil.
func lastGood(revisions records) *record {
	for i := len(revisions) - 2; i >= 0; i-- {
		r := &revisions[i]
		if (r.status == common.StatusSuperseded || r.stands()) && r.annotations[failedAnnotation] == "" {
			return r
		}
	}
	return nil
}

// refused tells of a release that was taken back from what it should be.
func (j *job) refused(ctx context.Context, revisions records) (*carrier.Result, error) {
	latest := revisions.latest()
	result := &carrier.Result{Found: latest.found(j.service.Owner.Keeper)}
	var seen *view
	if latest.stands() {
		var err error
		seen, err = j.look(ctx, latest)
		if _, waits := waitsFor(err); err != nil && !waits {
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

// remembered is what a revision has put on the cluster.
type remembered struct {
	objects, hooks []*unstructured.Unstructured
	applied        time.Time

	mu sync.Mutex
	// same are hashes of live objects that the API server says are as they should be, although they don't look like it: it
	// writes some values in another way.
	same map[identity][sha256.Size]byte
}

// rememberedKey names a version of a revision on any cluster.
type rememberedKey struct {
	uid     types.UID
	version string
}

// remember returns what a revision has put on the cluster, from memory if it can.
func (j *job) remember(r *record) (*remembered, error) {
	key := rememberedKey{uid: r.uid, version: r.version}
	if known, ok := j.remembered.Get(key); ok {
		return known.(*remembered), nil
	}
	store, err := newStore(j.access, j.service.Key.Namespace, nil)
	if err != nil {
		return nil, err
	}
	found, err := store.get(j.service.Key.Name, r.revision)
	if err != nil {
		return nil, err
	}
	parsed, err := j.placed(found.Manifest, nil, false)
	if err != nil {
		return nil, err
	}
	hooks, err := j.hooksOf(found)
	if err != nil {
		return nil, err
	}
	known := &remembered{objects: parsed, hooks: hooks, same: map[identity][sha256.Size]byte{}}
	if found.Info != nil {
		known.applied = found.Info.LastDeployed
	}
	j.remembered.Add(key, known)
	return known, nil
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
	known, err := j.remember(r)
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
		if live == nil || !covers(live.Object, desired.Object) && !known.isSame(live) {
			if live, err = j.read(ctx, j.client, desired); err != nil {
				return nil, err
			}
			if live == nil && carrier.Vanished(desired, j.Carrier.config.Clock.Since(known.applied)) {
				continue
			}
			changes, err := j.drift(ctx, known, desired, live)
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

// drift tells how a live object differs from what was applied.
func (j *job) drift(ctx context.Context, known *remembered, desired, live *unstructured.Unstructured) ([]plan.Change, error) {
	switch {
	case live == nil:
		return plan.Describe(plan.Create, desired, nil), nil
	case live.GetDeletionTimestamp() != nil, covers(live.Object, desired.Object), known.isSame(live):
		return nil, nil
	}
	p := &planner{job: j}
	if err := p.update(ctx, desired, live); err != nil {
		return nil, err
	}
	if len(p.changes) == 0 {
		known.keepSame(live)
	}
	if j.service.ClaimOn(live.GetLabels()) == carrier.Inherited {
		for i := range p.changes {
			p.changes[i].Description = "taken over from " + carrier.Whose(live)
		}
	}
	return p.changes, nil
}

func (k *remembered) isSame(live *unstructured.Unstructured) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	sum, ok := k.same[identityOf(live)]
	return ok && sum == contentHash(live)
}

func (k *remembered) keepSame(live *unstructured.Unstructured) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.same[identityOf(live)] = contentHash(live)
}

// contentHash is a hash of what somebody may have changed about an object.
func contentHash(live *unstructured.Unstructured) [sha256.Size]byte {
	content := map[string]any{"labels": live.GetLabels(), "annotations": live.GetAnnotations()}
	for name, value := range live.Object {
		if !slices.Contains([]string{"metadata", "status"}, name) {
			content["."+name] = value
		}
	}
	data, _ := json.Marshal(content)
	return sha256.Sum256(data)
}

// covers tells whether a live object has every field of the desired one with an equal value. It knows no defaults and no other
// ways to write a value: where it says no, the API server has to be asked.
func covers(live, desired any) bool {
	switch d := desired.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		if !ok {
			return len(d) == 0 && live == nil
		}
		for name, value := range d {
			if name == "status" || name == "creationTimestamp" && value == nil {
				continue
			}
			if !covers(l[name], value) {
				return false
			}
		}
		return true
	case []any:
		l, ok := live.([]any)
		if !ok {
			return len(d) == 0 && live == nil
		}
		return slices.EqualFunc(l, d, covers)
	}
	return plan.SameValue(live, desired)
}
