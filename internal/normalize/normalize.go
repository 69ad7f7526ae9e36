// Package normalize is for objects where they enter: those of charts, manifests, files and authors' code. Kubernetes' own accessors return
// nothing of a map of labels or annotations with one value that is not text, and whoever adds a label then has lost the others. Check refuses
// such an object, and Object makes one that passed be what an API server has.
package normalize

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apilabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Check returns an error for an object without a kind or an API version, for one whose name or namespace can't be a part of a URL, so that no API
// server can be asked for it, and for one with labels, annotations or text data of a Secret that are not all text. A null among them is an empty
// text, as for API servers. The error does not name the object, and shows no value of a Secret's data.
func Check(object map[string]any) error {
	kind, _ := object["kind"].(string)
	version, _ := object["apiVersion"].(string)
	if kind == "" || version == "" {
		return errors.New("it needs apiVersion and kind, which are text")
	}
	if _, err := schema.ParseGroupVersion(version); err != nil {
		return err
	}
	metadata, ok := object["metadata"].(map[string]any)
	if object["metadata"] != nil && !ok {
		return errors.New("metadata is no map")
	}
	for _, name := range []string{"name", "namespace"} {
		text, _ := metadata[name].(string)
		if faults := content.IsPathSegmentName(text); len(faults) > 0 {
			return fmt.Errorf("metadata.%s %s", name, strings.Join(faults, ", "))
		}
	}
	for _, name := range []string{"labels", "annotations"} {
		if err := checkTexts("metadata."+name, metadata[name], describe); err != nil {
			return err
		}
	}
	if isSecret(object) {
		return checkTexts("stringData", object["stringData"], func(any) string { return "which is no text" })
	}
	return nil
}

func checkTexts(path string, value any, describe func(any) string) error {
	texts, ok := value.(map[string]any)
	if value != nil && !ok {
		return fmt.Errorf("%s is no map of texts: it is %s", path, describe(value))
	}
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		switch value := texts[key].(type) {
		case string, nil:
		default:
			return fmt.Errorf("%s is no map of texts: put quotes around the value of %q, %s", path, key, describe(value))
		}
	}
	return nil
}

func describe(value any) string {
	switch value := value.(type) {
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	case string:
		return fmt.Sprintf("the text %q", value)
	case bool:
		return fmt.Sprintf("the boolean %t", value)
	}
	number, _ := json.Marshal(value) // All else that JSON has is numbers.
	return "the number " + string(number)
}

// Object gives an object the form in which API servers have it: null among its labels, annotations and the data of a Secret is an empty text, and
// the stringData of a Secret is in its data. What Check refuses among labels and annotations becomes text: stored objects were not always checked.
func Object(object map[string]any) {
	if metadata, ok := object["metadata"].(map[string]any); ok {
		for _, name := range []string{"labels", "annotations"} {
			if given, ok := metadata[name].(map[string]any); ok {
				metadata[name] = textsOf(given)
			} else {
				delete(metadata, name)
			}
		}
	}
	if isSecret(object) {
		FoldText(object)
	}
}

// FoldText moves the stringData of a Secret into its data, as API servers do it. Applied as stringData, a key that is withdrawn later would stay.
func FoldText(secret map[string]any) {
	given, _ := secret["data"].(map[string]any)
	text, _ := secret["stringData"].(map[string]any)
	data := withoutNulls(given)
	for name, value := range withoutNulls(text) {
		if s, ok := value.(string); ok {
			value = base64.StdEncoding.EncodeToString([]byte(s))
		}
		data[name] = value
	}
	delete(secret, "stringData")
	delete(secret, "data")
	if len(data) > 0 {
		secret["data"] = data
	}
}

// textsOf returns a copy of a map with the texts that JSON has for what is none.
func textsOf(values map[string]any) map[string]any {
	texts := withoutNulls(values)
	for name, value := range texts {
		if _, ok := value.(string); !ok {
			text, _ := json.Marshal(value) // JSON values can always be encoded.
			texts[name] = string(text)
		}
	}
	return texts
}

// withoutNulls returns a copy of a map with empty texts in place of nulls.
func withoutNulls(values map[string]any) map[string]any {
	all := make(map[string]any, len(values))
	for name, value := range values {
		if value == nil {
			value = ""
		}
		all[name] = value
	}
	return all
}

func isSecret(object map[string]any) bool {
	version, _ := object["apiVersion"].(string)
	return object["kind"] == "Secret" && !strings.Contains(version, "/")
}

// Items returns the items of a list. One that says neither its kind nor its API version has those of the list, such as ConfigMap in a
// ConfigMapList, as Kubernetes' clients decode it. The list is not changed.
func Items(list map[string]any) []any {
	items, _ := list["items"].([]any)
	kind, _ := list["kind"].(string)
	all := slices.Clone(items)
	for i, item := range all {
		fields, ok := item.(map[string]any)
		if of := strings.TrimSuffix(kind, "List"); ok && of != "" && fields["kind"] == nil && fields["apiVersion"] == nil {
			fields = maps.Clone(fields)
			fields["kind"], fields["apiVersion"] = of, list["apiVersion"]
			all[i] = fields
		}
	}
	return all
}

// Mark adds labels and annotations to an object. Whatever else it has among them stays: what is not text in an unstructured one becomes text.
func Mark(object metav1.Object, labels, annotations map[string]string) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		object.SetLabels(apilabels.Merge(object.GetLabels(), labels))
		object.SetAnnotations(apilabels.Merge(object.GetAnnotations(), annotations))
		return
	}
	if u.Object == nil {
		u.Object = map[string]any{}
	}
	metadata, isMap := u.Object["metadata"].(map[string]any)
	if !isMap {
		metadata = map[string]any{}
		u.Object["metadata"] = metadata
	}
	for name, more := range map[string]map[string]string{"labels": labels, "annotations": annotations} {
		texts := map[string]any{}
		switch given := metadata[name].(type) {
		case map[string]any:
			texts = textsOf(given)
		case map[string]string: // which authors write, although it is none of JSON's types
			for key, text := range given {
				texts[key] = text
			}
		}
		for key, text := range more {
			texts[key] = text
		}
		metadata[name] = texts
	}
}
