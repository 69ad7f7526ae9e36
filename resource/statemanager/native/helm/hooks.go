package helm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	release "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// isHook tells whether an object is that of a hook. Helm puts nothing on it that says whose it is: the labels of the service do.
func isHook(u *unstructured.Unstructured) bool {
	_, ok := u.GetAnnotations()[release.HookAnnotation]
	return ok
}

// hookThere reads the metadata of a hook's object; nil is one that is not there. One that is somebody else's is an error: running
// the hook would replace it.
func (j *job) hookThere(ctx context.Context, u *unstructured.Unstructured) (*metav1.PartialObjectMetadata, error) {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(u.GroupVersionKind())
	err := j.client.Get(ctx, client.ObjectKeyFromObject(u), live)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the hook %s: %w", describe(u), err)
	case j.refuses(live) != nil:
		return nil, j.refuses(live)
	case !j.service.Has(live.Labels):
		return nil, fmt.Errorf("%s is there already and not from this release, and a hook would replace it: delete it, or rename the hook: %w",
			describe(u), carrier.ErrConflict)
	}
	return live, nil
}

// checkHooks refuses, before anything is touched, hooks of any event that have no name, and those of these events that would replace an
// object of another owner or have an object that would not be created.
func (p *planner) checkHooks(ctx context.Context, hooks []*release.Hook, events ...release.HookEvent) error {
	for _, h := range hooks {
		all, err := parseManifest(strings.NewReader(h.Manifest))
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(all, isNameless); i >= 0 {
			return framework.Permanent(fmt.Errorf("the hook %s is a %s without a name: give it a metadata.name, because what has only a "+
				"generateName is not found again, or set disableHooks", h.Path, all[i].GetKind()))
		}
		if !slices.ContainsFunc(events, func(e release.HookEvent) bool { return slices.Contains(h.Events, e) }) {
			continue
		}
		objects, err := p.placed(h.Manifest, p.known, true)
		if err != nil {
			return err
		}
		for _, u := range objects {
			var live *metav1.PartialObjectMetadata
			if !p.fresh || u.GetNamespace() != p.service.Key.Namespace {
				if live, err = p.hookThere(ctx, u); err != nil {
					return err
				}
			}
			if err := p.tryHook(ctx, u, live != nil); err != nil {
				return fmt.Errorf("hook %s: %w", h.Path, err)
			}
			if live != nil && live.DeletionTimestamp == nil && u.GroupVersionKind().GroupKind() != carrier.DefinitionKind {
				// Policies of hooks delete it, unless it has objects of others.
				if _, err := p.noteBystanders(ctx, live); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// tryHook asks the API server by a dry run whether it would create an object of a hook. One that is there is replaced, or changed.
func (p *planner) tryHook(ctx context.Context, u *unstructured.Unstructured, there bool) error {
	desired := u.DeepCopy()
	carrier.Dress(desired, p.service)
	before, pending := p.pending[u.GroupVersionKind().GroupKind()]
	err := p.applyObject(ctx, desired.DeepCopy(), client.DryRunAll)
	if there && carrier.Replaceable(err) {
		err = carrier.Creatable(ctx, p.client, desired)
	}
	later, err := carrier.TriedOut(ctx, p.client, desired, err, pending)
	if later && (before || !pending) {
		p.later = append(p.later, desired)
	}
	return err
}

// hookLive is hookThere for an object that may be deleted: this service's own, not to be kept, and not going already.
func (j *job) hookLive(ctx context.Context, u *unstructured.Unstructured) (*metav1.PartialObjectMetadata, error) {
	live, err := j.hookThere(ctx, u)
	switch {
	case carrier.IsConflict(err):
		return nil, nil
	case live == nil || err != nil:
		return nil, err
	case keeps(live.Annotations) || keeps(u.GetAnnotations()) || live.DeletionTimestamp != nil:
		return nil, nil
	}
	return live, nil
}

// deleteHook deletes what a hook has left behind.
func (j *job) deleteHook(ctx context.Context, u *unstructured.Unstructured) error {
	err := j.deleteLive(ctx, u, j.hookLive)
	if err != nil {
		return fmt.Errorf("delete the hook %s: %w", describe(u), err)
	}
	return nil
}

// hooksFor are the hooks of an event, in the order in which Helm runs them.
func hooksFor(hooks []*release.Hook, event release.HookEvent) []*release.Hook {
	var some []*release.Hook
	for _, h := range hooks {
		if slices.Contains(h.Events, event) {
			some = append(some, h)
		}
	}
	slices.SortStableFunc(some, func(a, b *release.Hook) int {
		return cmp.Or(cmp.Compare(a.Weight, b.Weight), strings.Compare(a.Name, b.Name))
	})
	return some
}

// runHooks runs the hooks of an event, from where the operation is. The error may be errBegun.
func (o *operation) runHooks(event release.HookEvent) error {
	hooks := hooksFor(o.release.Hooks, event)
	if o.options.disableHooks || len(hooks) == 0 {
		return nil
	}
	at := progress{Event: event}
	if o.at != nil && o.at.Event == event {
		at = *o.at
	}
	for ; at.Hook < len(hooks); at = (progress{Event: event, Hook: at.Hook + 1}) {
		if err := o.runHook(hooks, at); err != nil {
			return err
		}
	}
	vanish := slices.ContainsFunc(hooks, func(h *release.Hook) bool {
		return completes(h) && slices.Contains(h.DeletePolicies, release.HookSucceeded)
	})
	if vanish && at.State != hooksEnded {
		// What is deleted now would be missed otherwise.
		if err := o.note(progress{Event: event, Hook: len(hooks), State: hooksEnded, Since: o.now()}); err != nil {
			return err
		}
	}
	slices.Reverse(hooks)
	return o.deleteHooks(release.HookSucceeded, hooks...)
}

// runHook runs a hook from where it is.
func (o *operation) runHook(hooks []*release.Hook, at progress) error {
	h := hooks[at.Hook]
	if len(h.DeletePolicies) == 0 {
		h.DeletePolicies = []release.HookDeletePolicy{release.HookBeforeHookCreation}
	}
	if at.State == "" {
		at.Since = o.now()
		if err := o.deleteHooks(release.HookBeforeHookCreation, h); err != nil {
			return err
		}
	}
	objects, err := o.placed(h.Manifest, o.known, false)
	if err != nil {
		return fmt.Errorf("%s hook %s: %w", at.Event, h.Path, err)
	}
	// A release of somebody's Helm can have some.
	objects = slices.DeleteFunc(objects, isNameless)
	if at.State == "" || at.State == hookCleared {
		for _, u := range objects {
			live, err := o.read(o.ctx, o.client, u)
			if err != nil {
				return err
			}
			if live != nil && live.GetDeletionTimestamp() != nil {
				at.State = hookCleared
				return o.await(at.of(u))
			}
		}
		at = progress{Event: at.Event, Hook: at.Hook, State: hookBegun, Since: o.now()}
		h.LastRun = release.HookExecution{StartedAt: at.Since, Phase: release.HookPhaseRunning}
		if err := o.record(at); err != nil {
			return err
		}
	}
	if at.State == hookBegun {
		for _, u := range objects {
			if err := o.createHook(u); err != nil {
				h.LastRun.CompletedAt, h.LastRun.Phase = o.now(), release.HookPhaseFailed
				return fmt.Errorf("hook %s: %w", h.Path, err)
			}
		}
	}
	err = o.awaitHook(objects, at)
	if err != nil && !failed(err) {
		return err
	}
	h.LastRun.CompletedAt, h.LastRun.Phase = o.now(), release.HookPhaseSucceeded
	if err != nil {
		h.LastRun.Phase = release.HookPhaseFailed
		return errors.Join(err, o.deleteHooks(release.HookFailed, h), o.deleteHooks(release.HookSucceeded, hooks[:at.Hook]...))
	}
	return nil
}

// createHook puts an object of a hook there.
func (o *operation) createHook(u *unstructured.Unstructured) error {
	carrier.Dress(u, o.service)
	if _, err := o.hookThere(o.ctx, u); err != nil {
		return err
	}
	return o.deploy(u)
}

// awaitHook looks whether a hook has ended. The error is errBegun while it has not.
func (o *operation) awaitHook(objects []*unstructured.Unstructured, at progress) error {
	for _, u := range objects {
		if !awaited(u) {
			continue
		}
		live, err := o.read(o.ctx, o.client, u)
		switch {
		case err != nil:
			return err
		case live == nil && carrier.Vanished(u, o.now().Sub(at.Since)):
			continue
		case live == nil:
			return &hookError{object: describe(u), reason: "was deleted before it completed"}
		}
		done, err := hookDone(live)
		if err != nil {
			return err
		}
		if !done {
			at.State = hookRunning
			return o.await(at.of(u))
		}
	}
	return nil
}

// await leaves the operation until an object of a hook has ended, or its time is over.
func (o *operation) await(at progress) error {
	if o.now().Sub(at.Since) >= o.options.timeout {
		return o.tooLate(at.object())
	}
	if o.at == nil || *o.at != at {
		if err := o.note(at); err != nil {
			return err
		}
	}
	return errBegun
}

// record records the revision with how far its hooks are.
func (o *operation) record(at progress) error {
	o.at = &at
	o.release.annotate(at.annotation())
	if err := o.update(o.ctx, o.release); err != nil {
		return fmt.Errorf("record that a hook %s is begun: %w", at.Event, err)
	}
	return nil
}

// note is record where nothing but that has changed.
func (o *operation) note(at progress) error {
	o.at = &at
	if err := o.patch(o.ctx, o.release, at.annotation()); err != nil {
		return fmt.Errorf("note how far the hooks %s are: %w", at.Event, err)
	}
	return nil
}

// completes reports whether the object of a hook runs once, to its end.
func completes(h *release.Hook) bool {
	return h.Kind == carrier.JobKind.Kind || h.Kind == podKind.Kind
}

// deleteHooks deletes the objects of those hooks that have a policy. Helm never deletes definitions. What has run to its end is deleted before it
// runs again whatever its policy is: Helm would say that it exists already.
func (o *operation) deleteHooks(policy release.HookDeletePolicy, hooks ...*release.Hook) error {
	for _, h := range hooks {
		again := policy == release.HookBeforeHookCreation && completes(h)
		if h.Kind == carrier.DefinitionKind.Kind || !again && !slices.Contains(h.DeletePolicies, policy) {
			continue
		}
		objects, err := o.placed(h.Manifest, nil, true)
		if err != nil {
			return err
		}
		for _, u := range objects {
			if err := o.deleteLive(o.ctx, u, o.hookThere); err != nil {
				return fmt.Errorf("delete the hook %s: %w", describe(u), err)
			}
		}
	}
	return nil
}

// failed tells whether an error says that a hook has failed.
func failed(err error) bool {
	var hook *hookError
	return errors.As(err, &hook)
}
