package operatortest

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// normalize returns the objects by kind and name without what differs between two
// runs by nature, and without the data of Secrets. It may change the objects given.
func normalize(objects []*unstructured.Unstructured, namespace string, secret []byte, hook func(*unstructured.Unstructured)) (map[string]any, error) {
	names := newNames(objects, namespace)
	type entry struct{ title, text string }
	entries := make([]entry, 0, len(objects))
	contents := map[entry]any{}
	for _, object := range objects {
		title := names.title(object)
		if hook != nil {
			hook(object)
		}
		hideSecret(object, secret)
		dropAssigned(object)
		content := names.neutral(dropIdentity(object))
		sortManagers(content)
		text, err := json.Marshal(content)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", title, err)
		}
		e := entry{title, string(text)}
		entries = append(entries, e)
		contents[e] = content
	}

	// Generated names are alike, so several objects may have one title.
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(strings.Compare(a.title, b.title), strings.Compare(a.text, b.text))
	})
	normalized := make(map[string]any, len(entries))
	count := map[string]int{}
	for _, e := range entries {
		count[e.title]++
		title := e.title
		if count[e.title] > 1 {
			title = fmt.Sprintf("%s #%d", e.title, count[e.title])
		}
		normalized[title] = contents[e]
	}
	return normalized, nil
}

// dropIdentity removes the metadata that no two objects share, and says of observed
// generations only whether they are the current one.
func dropIdentity(object *unstructured.Unstructured) map[string]any {
	generation := object.GetGeneration()
	if metadata, ok := object.Object["metadata"].(map[string]any); ok {
		for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "selfLink"} {
			delete(metadata, field)
		}
		managers, _ := metadata["managedFields"].([]any)
		for _, manager := range managers {
			if manager, ok := manager.(map[string]any); ok {
				delete(manager, "time")
			}
		}
	}
	nameGenerations(object.Object["status"], generation)
	return object.Object
}

func nameGenerations(value any, current int64) {
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			if observed, ok := field.(int64); ok && key == "observedGeneration" {
				value[key] = "behind"
				if observed == current {
					value[key] = "current"
				}
				continue
			}
			nameGenerations(field, current)
		}
	case []any:
		for _, field := range value {
			nameGenerations(field, current)
		}
	}
}

// dropAssigned replaces the addresses and ports that the API server gives a Service.
func dropAssigned(object *unstructured.Unstructured) {
	if object.GroupVersionKind() != corev1.SchemeGroupVersion.WithKind("Service") {
		return
	}
	spec, ok := object.Object["spec"].(map[string]any)
	if !ok || spec["clusterIP"] == corev1.ClusterIPNone {
		return
	}
	assigned(spec, "clusterIP", "clusterIPs", "healthCheckNodePort")
	ports, _ := spec["ports"].([]any)
	for _, port := range ports {
		if port, ok := port.(map[string]any); ok {
			assigned(port, "nodePort")
		}
	}
}

func assigned(fields map[string]any, names ...string) {
	for _, name := range names {
		if _, ok := fields[name]; ok {
			fields[name] = "<assigned>"
		}
	}
}

// hideSecret replaces a Secret's data, also in the annotation of client-side apply,
// by digests under a key that is thrown away: equal data stays equal.
func hideSecret(object *unstructured.Unstructured, key []byte) {
	if object.GroupVersionKind() != corev1.SchemeGroupVersion.WithKind("Secret") {
		return
	}
	for _, field := range []string{"data", "stringData"} {
		data, _ := object.Object[field].(map[string]any)
		for name, value := range data {
			data[name] = digest(key, value)
		}
	}
	annotations := object.GetAnnotations()
	if applied, ok := annotations[corev1.LastAppliedConfigAnnotation]; ok {
		annotations[corev1.LastAppliedConfigAnnotation] = digest(key, applied)
		object.SetAnnotations(annotations)
	}
}

func digest(key []byte, value any) string {
	mac := hmac.New(sha256.New, key)
	fmt.Fprint(mac, value)
	return fmt.Sprintf("<digest %x>", mac.Sum(nil)[:8])
}

// sortManagers puts the managed fields in an order that does not depend on when each
// manager wrote.
func sortManagers(content map[string]any) {
	metadata, _ := content["metadata"].(map[string]any)
	managers, _ := metadata["managedFields"].([]any)
	slices.SortFunc(managers, func(a, b any) int {
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
	})
}
