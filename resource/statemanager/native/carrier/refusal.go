package carrier

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Refused reports whether an API server refuses an object for what is in it. Where the server can't read the object for a server-side apply
// (an unknown field, a number in place of a text, two items of a list with one key), its answer has the code 500 and no reason. What fails in
// the server itself, or in a webhook, has a reason. A webhook that does not support dry runs says nothing about the object.
func Refused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch said := status.Status(); said.Reason {
	case metav1.StatusReasonInvalid, metav1.StatusReasonRequestEntityTooLarge:
		return true
	case metav1.StatusReasonBadRequest:
		return !strings.HasSuffix(said.Message, "does not support dry run")
	case metav1.StatusReasonUnknown:
		// The API server passes on what its store says in the same form.
		ofStore := strings.Contains(said.Message, "etcdserver: ") || strings.Contains(said.Message, "rpc error: ")
		return said.Code == http.StatusInternalServerError && !ofStore
	}
	return false
}

// AwaitsDefinition reports whether an object whose definition is about to change can't be tried out before that.
func AwaitsDefinition(err error) bool { return Refused(err) || meta.IsNoMatchError(err) }

// TriedOut returns what the answer to the dry run of a creation means. A refusal is why the object would not be created: what is in it, or a
// right that is missing. The dry run has to be repeated later where something that the object needs is still to be made: its namespace, or its
// definition if that is pending. All other errors say nothing for certain, because what is made before the object may change them.
func TriedOut(ctx context.Context, c client.Client, object *unstructured.Unstructured, err error, pending bool) (later bool, refusal error) {
	switch {
	case pending && AwaitsDefinition(err), apierrors.IsNotFound(err):
		return true, nil
	case Refused(err), apierrors.IsForbidden(err) && lacksRight(ctx, c, object):
		return false, err
	}
	return false, nil
}

// lacksRight reports whether a client has not the rights to apply an object that is not there.
func lacksRight(ctx context.Context, c client.Client, object *unstructured.Unstructured) bool {
	kind := object.GroupVersionKind()
	mapping, err := c.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return false
	}
	for _, verb := range []string{"patch", "create"} {
		review := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"resourceAttributes": map[string]any{
			"namespace": object.GetNamespace(), "name": object.GetName(), "verb": verb,
			"group": mapping.Resource.Group, "version": mapping.Resource.Version, "resource": mapping.Resource.Resource,
		}}}}
		review.SetGroupVersionKind(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"))
		if c.Create(ctx, review, client.DryRunAll) != nil {
			return false
		}
		if allowed, _, _ := unstructured.NestedBool(review.Object, "status", "allowed"); !allowed {
			return true
		}
	}
	return false
}

// schemaTimeout is how long an API server may take until it serves the schema of a definition that has changed. Nothing reports that.
const schemaTimeout = 5 * time.Second

// Retry repeats a write, or a dry run, of an object whose definition has just changed, as long as it is refused: the API server may still have
// the old schema.
func Retry(ctx context.Context, write func() error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, schemaTimeout, true, func(context.Context) (bool, error) {
		if last = write(); Refused(last) {
			return false, nil
		}
		return true, last
	})
	if last != nil {
		return last
	}
	return err
}

// unchangeable is what API servers say of a field that can't be changed, where the type of the cause does not: all other such fields are
// Forbidden.
var unchangeable = []string{
	// "field is immutable" of most kinds, "Value is immutable" and the like of definitions and of policies.
	"immutable",
	// "may not change once set" of Services, "field cannot be modified once set" of declarative validation.
	"once set",
	// RoleBindings and ClusterRoleBindings of older versions of Kubernetes.
	"cannot change roleRef",
	// A rule of a definition that compares with the old value, and has no message of its own.
	"oldSelf",
}

// Immutable reports whether an API server says that it refuses to change an object that is there: another version of the object is needed, or
// another object.
func Immutable(err error) bool {
	return refusesChange(err, func(cause metav1.StatusCause) bool {
		return cause.Type == metav1.CauseType(field.ErrorTypeForbidden) ||
			slices.ContainsFunc(unchangeable, func(words string) bool { return strings.Contains(cause.Message, words) })
	})
}

// Replaceable reports whether an object that an API server refuses to change may be one that it would create: then it is the change that is
// refused, however that is said, and Creatable confirms it. An item that is there twice is no such refusal: one of them is somebody else's.
func Replaceable(err error) bool {
	return refusesChange(err, func(cause metav1.StatusCause) bool {
		return cause.Type == metav1.CauseType(field.ErrorTypeForbidden) || cause.Type == metav1.CauseType(field.ErrorTypeInvalid)
	})
}

// refusesChange reports whether an object is invalid, for causes that are all of a kind.
func refusesChange(err error, is func(metav1.StatusCause) bool) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		return false
	}
	return !slices.ContainsFunc(status.Status().Details.Causes, func(cause metav1.StatusCause) bool { return !is(cause) })
}

// replaceTimeout is how long an object that is replaced may take to go before it is left to the next try.
const replaceTimeout = 5 * time.Second

// Creatable asks an API server by a dry run whether it would create an object that is there, if it were not: it says that there is one only
// when nothing else is wrong. What the one that is there has of a quota, and the node ports of a Service, do not count here. Whether the address
// of a Service is free, a dry run does not tell.
func Creatable(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	asked := object.DeepCopy()
	asked.SetUID("")
	asked.SetResourceVersion("")
	if asked.GroupVersionKind() == serviceKind {
		if err := dropNodePorts(ctx, c, asked); err != nil {
			return err
		}
	}
	err := c.Create(ctx, asked, client.DryRunAll)
	if err == nil || apierrors.IsAlreadyExists(err) || exceedsQuota(err) {
		return nil
	}
	return fmt.Errorf("it would not be created anew: %w", brief(err))
}

var serviceKind = schema.GroupVersionKind{Version: "v1", Kind: "Service"}

// dropNodePorts takes those node ports out of a Service that the one which is there has: they are free once it is gone.
func dropNodePorts(ctx context.Context, c client.Client, service *unstructured.Unstructured) error {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(serviceKind)
	if err := c.Get(ctx, client.ObjectKeyFromObject(service), live); err != nil {
		return client.IgnoreNotFound(err)
	}
	allocated := map[string]bool{}
	for _, holder := range nodePortHolders(live) {
		for name, field := range holder {
			if name == "nodePort" || name == "healthCheckNodePort" {
				allocated[fmt.Sprint(field)] = true
			}
		}
	}
	for _, holder := range nodePortHolders(service) {
		maps.DeleteFunc(holder, func(name string, field any) bool {
			return (name == "nodePort" || name == "healthCheckNodePort") && allocated[fmt.Sprint(field)]
		})
	}
	return nil
}

// nodePortHolders are the maps of a Service that may have a node port.
func nodePortHolders(service *unstructured.Unstructured) []map[string]any {
	spec, _ := service.Object["spec"].(map[string]any)
	holders := []map[string]any{spec}
	ports, _ := spec["ports"].([]any)
	for _, each := range ports {
		if port, ok := each.(map[string]any); ok {
			holders = append(holders, port)
		}
	}
	return holders
}

// Replace deletes an object, as it was seen, with what belongs to it, and creates another one in its place by create once it is gone. One that
// would not be created replaces nothing. That it takes its time is an error: it is waited for by whoever tries again.
func Replace(ctx context.Context, c client.Client, seen client.Object, by *unstructured.Unstructured, create func() error) error {
	if err := Creatable(ctx, c, by); err != nil {
		return err
	}
	uid, version := seen.GetUID(), seen.GetResourceVersion()
	gone := &metav1.PartialObjectMetadata{}
	gone.SetGroupVersionKind(seen.GetObjectKind().GroupVersionKind())
	gone.SetNamespace(seen.GetNamespace())
	gone.SetName(seen.GetName())
	key := client.ObjectKeyFromObject(gone)
	err := c.Delete(ctx, gone, client.Preconditions{UID: &uid, ResourceVersion: &version}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete it to create it anew: %w", err)
	}
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, replaceTimeout, true, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, key, gone)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("wait until it is gone, to create it anew: %w", err)
	}
	return create()
}
