package helm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"helm.sh/helm/v4/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

const (
	// definitionTimeout is how long a new definition may take until its kind can be used.
	definitionTimeout = 30 * time.Second
	// lookAgain is the pause between looks at something that can't be watched.
	lookAgain = 100 * time.Millisecond
)

// hookWaiter waits for hooks, and for nothing else: whether the objects of a release are healthy is seen later.
type hookWaiter struct {
	*job
	ctx context.Context
}

var _ kube.Waiter = (*hookWaiter)(nil)

// Wait implements kube.Waiter.
func (w *hookWaiter) Wait(kube.ResourceList, time.Duration) error { return nil }

// WaitWithJobs implements kube.Waiter.
func (w *hookWaiter) WaitWithJobs(kube.ResourceList, time.Duration) error { return nil }

// WaitForDelete implements kube.Waiter. Helm waits for hooks that it deletes, and for the objects of a release.
func (w *hookWaiter) WaitForDelete(resources kube.ResourceList, timeout time.Duration) error {
	for _, info := range resources {
		u := object(info)
		if !isHook(u) {
			continue
		}
		err := w.until(u, timeout, func(live *unstructured.Unstructured) (bool, error) { return live == nil, nil })
		if err != nil {
			return err
		}
	}
	return nil
}

// WatchUntilReady implements kube.Waiter: a job has to complete and a pod to succeed; all else is ready when it is there.
func (w *hookWaiter) WatchUntilReady(resources kube.ResourceList, timeout time.Duration) error {
	for _, info := range resources {
		u := object(info)
		var done func(*unstructured.Unstructured) (bool, error)
		switch u.GroupVersionKind().GroupKind() {
		case carrier.JobKind:
			done = jobDone
		case schema.GroupKind{Kind: "Pod"}:
			done = podDone
		default:
			continue
		}
		if err := w.until(u, timeout, done); err != nil {
			return err
		}
	}
	return nil
}

func jobDone(job *unstructured.Unstructured) (bool, error) {
	if job == nil {
		return false, &hookError{reason: "was deleted before it completed"}
	}
	conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if condition["status"] != "True" {
			continue
		}
		switch condition["type"] {
		case "Complete":
			return true, nil
		case "Failed":
			return false, &hookError{reason: fmt.Sprintf("failed: %v: %v", condition["reason"], condition["message"])}
		}
	}
	return false, nil
}

func podDone(pod *unstructured.Unstructured) (bool, error) {
	if pod == nil {
		return false, &hookError{reason: "was deleted before it succeeded"}
	}
	phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
	switch phase {
	case "Succeeded":
		return true, nil
	case "Failed":
		message, _, _ := unstructured.NestedString(pod.Object, "status", "message")
		return false, &hookError{reason: "failed " + message}
	}
	return false, nil
}

// until watches an object until it is done; nil is one that is not there.
func (w *hookWaiter) until(u *unstructured.Unstructured, timeout time.Duration, done func(*unstructured.Unstructured) (bool, error)) error {
	ctx, cancel := context.WithTimeout(w.ctx, timeout)
	defer cancel()
	for {
		ok, version, err := w.look(ctx, u, done)
		if err == nil && !ok {
			ok, err = w.follow(ctx, u, version, done)
		}
		var failed *hookError
		switch {
		case ok:
			return nil
		case errors.As(err, &failed):
			return &hookError{object: describe(u), reason: failed.reason}
		case w.ctx.Err() != nil:
			return fmt.Errorf("wait for the hook %s: %w", describe(u), w.ctx.Err())
		case ctx.Err() != nil:
			return &hookError{object: describe(u), reason: fmt.Sprintf("did not end within %s", timeout)}
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
			return fmt.Errorf("wait for the hook %s: %w", describe(u), err)
		}
		// The watch has ended, or there was no answer: look again.
		select {
		case <-ctx.Done():
		case <-time.After(lookAgain):
		}
	}
}

// look reads the object once.
func (w *hookWaiter) look(ctx context.Context, u *unstructured.Unstructured, done func(*unstructured.Unstructured) (bool, error)) (bool, string, error) {
	live := emptyOf(u)
	err := w.client.Get(ctx, client.ObjectKeyFromObject(u), live)
	switch {
	case apierrors.IsNotFound(err):
		ok, err := done(nil)
		return ok, "", err
	case err != nil:
		return false, "", err
	}
	ok, err := done(live)
	return ok, live.GetResourceVersion(), err
}

// follow watches the object from a version on, until it is done or the watch ends.
func (w *hookWaiter) follow(ctx context.Context, u *unstructured.Unstructured, version string, done func(*unstructured.Unstructured) (bool, error)) (bool, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(u.GroupVersionKind())
	events, err := w.client.Watch(ctx, list, client.InNamespace(u.GetNamespace()), &client.ListOptions{
		Namespace: u.GetNamespace(), FieldSelector: fields.OneTermEqualSelector("metadata.name", u.GetName()),
	}, fromVersion(version))
	if err != nil {
		return false, err
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		live, isObject := event.Object.(*unstructured.Unstructured)
		switch {
		case event.Type == "ERROR" || !isObject:
			return false, nil
		case event.Type == "DELETED":
			live = nil
		}
		if ok, err := done(live); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// fromVersion is an option of watches: they begin after a version.
type fromVersion string

// ApplyToList implements client.ListOption.
func (v fromVersion) ApplyToList(options *client.ListOptions) {
	if options.Raw == nil {
		options.Raw = options.AsListOptions()
	}
	options.Raw.ResourceVersion = string(v)
}

// established waits until the kinds of a definition can be used.
func (j *job) established(ctx context.Context, definition *unstructured.Unstructured) error {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	name, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	var kinds []schema.GroupVersionKind
	for _, v := range versions {
		version, _ := v.(map[string]any)
		if served, _ := version["served"].(bool); served {
			served, _ := version["name"].(string)
			kinds = append(kinds, schema.GroupVersionKind{Group: group, Version: served, Kind: name})
		}
	}
	err := wait.PollUntilContextTimeout(ctx, lookAgain, definitionTimeout, true, func(context.Context) (bool, error) {
		for _, kind := range kinds {
			_, err := j.mapper.RESTMapping(kind.GroupKind(), kind.Version)
			if meta.IsNoMatchError(err) {
				if resettable, ok := j.mapper.(meta.ResettableRESTMapper); ok {
					resettable.Reset()
				}
				return false, nil
			}
			if err != nil {
				return false, err
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("wait until the kind of %s can be used: %w", describe(definition), err)
	}
	return nil
}
