package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// editTries is how many fields of an object are tried until the API server lets one be changed.
const editTries = 30

// byHand is the field manager of what people change by hand.
const byHand = client.FieldOwner("kubectl-edit")

var definitionKind = schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}

// keys are the fields by which items of lists are told apart: an item with another one is another item, of whoever wrote it.
var keys = []string{"containerPort", "devicePath", "ip", "mountPath", "name", "port", "protocol", "topologyKey", "type", "uid", "whenUnsatisfiable"}

// edit changes a field by hand in each object of a subject that is there, one that the subject sets, and tells which.
func (c *cluster) edit(ctx context.Context, namespace string, desired []*unstructured.Unstructured) ([]string, error) {
	var done []string
	for _, u := range desired {
		live, err := c.find(ctx, namespace, u)
		if err != nil {
			return done, err
		}
		if live == nil {
			continue // a Job that has vanished
		}
		leaves := leavesOf(u, live)
		for _, l := range leaves[:min(len(leaves), editTries)] {
			patch := client.RawPatch(types.JSONPatchType, l.patch(u.GetKind()))
			if c.client.Patch(ctx, live.DeepCopy(), patch, client.DryRunAll) != nil {
				continue // it can't be changed
			}
			if err := c.client.Patch(ctx, live.DeepCopy(), patch, byHand); err != nil {
				return done, fmt.Errorf("change %s of %s: %w", l, keyOf(live), err)
			}
			done = append(done, fmt.Sprintf("%s of %s", l, keyOf(live)))
			break
		}
	}
	return done, ctx.Err()
}

// destroy deletes one object of each kind that a subject has, and tells which. Left are those with which others would go.
func (c *cluster) destroy(ctx context.Context, namespace string, desired []*unstructured.Unstructured) ([]string, error) {
	var done []string
	kinds := map[schema.GroupKind]bool{}
	for _, u := range desired {
		kind := u.GroupVersionKind().GroupKind()
		if kinds[kind] || holdsOthers(u, desired) {
			continue
		}
		live, err := c.find(ctx, namespace, u)
		if err != nil {
			return done, err
		}
		if live == nil {
			continue
		}
		if err := c.client.Delete(ctx, live, client.PropagationPolicy(metav1.DeletePropagationBackground)); client.IgnoreNotFound(err) != nil {
			return done, fmt.Errorf("delete %s: %w", keyOf(live), err)
		}
		kinds[kind] = true
		done = append(done, keyOf(live).String())
	}
	return done, nil
}

// find reads an object as it is on the cluster; nil is one that is not there.
func (c *cluster) find(ctx context.Context, namespace string, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(u.GroupVersionKind())
	name := client.ObjectKeyFromObject(u)
	namespaced, err := c.client.IsObjectNamespaced(u)
	if err != nil {
		return nil, fmt.Errorf("look for %s: %w", keyOf(u), err)
	}
	if namespaced && name.Namespace == "" {
		name.Namespace = namespace
	}
	err = c.client.Get(ctx, name, live)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil //nolint:nilnil // That there is none is an answer.
	}
	return live, err
}

// holdsOthers tells whether what is in an object would go with it.
func holdsOthers(u *unstructured.Unstructured, desired []*unstructured.Unstructured) bool {
	switch kind := u.GroupVersionKind().GroupKind(); kind {
	case schema.GroupKind{Kind: "Namespace"}, schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		return true
	case definitionKind:
		group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
		return slices.ContainsFunc(desired, func(other *unstructured.Unstructured) bool { return other.GroupVersionKind().Group == group })
	}
	return false
}

// leaf is a single value of an object, and where it is: names of fields and indexes of lists.
type leaf struct {
	path  []any
	value any
}

// String is the path.
func (l leaf) String() string {
	var b strings.Builder
	for _, step := range l.path {
		if i, ok := step.(int); ok {
			fmt.Fprintf(&b, "[%d]", i)
		} else {
			fmt.Fprintf(&b, ".%s", step)
		}
	}
	return strings.TrimPrefix(b.String(), ".")
}

// leavesOf returns the values that an object sets and that are on the cluster as it sets them, what it is about first, its labels and
// annotations last. A definition is changed in these only: its kind would go for a while. Left out are keys of lists, and the number of
// replicas: a StatefulSet that has had more keeps their claims.
func leavesOf(desired, live *unstructured.Unstructured) []leaf {
	var found []leaf
	fields := slices.Sorted(maps.Keys(desired.Object))
	for _, field := range fields {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, field) && desired.GroupVersionKind().GroupKind() != definitionKind {
			gather(&found, []any{field}, desired.Object[field], live.Object[field])
		}
	}
	for _, field := range []string{"labels", "annotations"} {
		wanted, _, _ := unstructured.NestedFieldNoCopy(desired.Object, "metadata", field)
		there, _, _ := unstructured.NestedFieldNoCopy(live.Object, "metadata", field)
		gather(&found, []any{"metadata", field}, wanted, there)
	}
	return found
}

func gather(found *[]leaf, path []any, desired, live any) {
	below := func(step any) []any { return append(slices.Clone(path), step) }
	switch d := desired.(type) {
	case map[string]any:
		l, _ := live.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(d)) {
			gather(found, below(name), d[name], l[name])
		}
	case []any:
		l, _ := live.([]any)
		for i := range min(len(d), len(l)) {
			gather(found, below(i), d[i], l[i])
		}
	case string, bool, int64, float64:
		name, _ := path[len(path)-1].(string)
		_, inList := path[max(0, len(path)-2)].(int)
		if d == live && name != "replicas" && (!inList || !slices.Contains(keys, name)) {
			*found = append(*found, leaf{path, d})
		}
	}
}

// patch is a JSON patch that gives the field another value.
func (l leaf) patch(kind string) []byte {
	var pointer strings.Builder
	for _, step := range l.path {
		text, ok := step.(string)
		if !ok {
			text = strconv.Itoa(step.(int))
		}
		pointer.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(text))
	}
	var other any
	switch v := l.value.(type) {
	case string:
		other = v + "-by-hand"
		if kind == "Secret" && l.path[0] == "data" {
			other = base64.StdEncoding.EncodeToString([]byte("by hand"))
		}
	case bool:
		other = !v
	case int64:
		other = v + 1
	case float64:
		other = v + 1
	}
	// A text, a number or a bool can always be encoded.
	body, _ := json.Marshal([]map[string]any{{"op": "replace", "path": pointer.String(), "value": other}})
	return body
}
