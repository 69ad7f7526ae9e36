package crdclient

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// HistoryAnnotation has the digests of the definitions that were applied, in order, after the
// version of the annotation's format, such as "v1 0a1b2c3d4e5f6071 8293a4b5c6d7e8f9". The last
// digest is the newest. An operator that finds its own digest among the earlier ones is older than
// the operator that applied the last one. Without the annotation no operator is older.
const HistoryAnnotation = "operatorkit.io/crd-history"

const (
	historyForm = "v1"
	// maxHistory is how many digests are kept.
	maxHistory = 32
)

// wanted is the definition given by the author.
type wanted struct {
	crd     *apiextensionsv1.CustomResourceDefinition
	content *unstructured.Unstructured
	digest  string
}

// standing is the definition in the cluster.
type standing struct {
	crd     apiextensionsv1.CustomResourceDefinition
	content *unstructured.Unstructured
	history []string
}

func newWanted(crd *apiextensionsv1.CustomResourceDefinition) (*wanted, error) {
	content, err := applyConfiguration(crd)
	if err != nil {
		return nil, err
	}
	digest, err := digestOf(crd)
	return &wanted{crd: crd, content: content, digest: digest}, err
}

func newStanding(content *unstructured.Unstructured) (*standing, error) {
	s := &standing{content: content}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content.Object, &s.crd); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	if form, digests, _ := strings.Cut(s.crd.Annotations[HistoryAnnotation], " "); form == historyForm {
		s.history = strings.Fields(digests)
	}
	return s, nil
}

// digestOf returns the digest of a definition's spec. It ignores the conversion, which others may
// set.
func digestOf(crd *apiextensionsv1.CustomResourceDefinition) (string, error) {
	said := &apiextensionsv1.CustomResourceDefinition{Spec: *crd.Spec.DeepCopy()}
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(said)
	said.Spec.Conversion = nil
	data, err := json.Marshal(said.Spec)
	if err != nil {
		return "", fmt.Errorf("encode: %w", err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8]), nil
}

// isNewer reports whether another definition was applied after the wanted one.
func (s *standing) isNewer(w *wanted) bool {
	at := slices.Index(s.history, w.digest)
	return at >= 0 && at < len(s.history)-1
}

// lacks returns the first field of the wanted definition that is missing or differs, and "" if
// there is none.
func (s *standing) lacks(w *wanted) string {
	for _, part := range [][]string{{"metadata", "labels"}, {"metadata", "annotations"}, {"spec"}} {
		want, _, _ := unstructured.NestedFieldNoCopy(w.content.Object, part...)
		has, _, _ := unstructured.NestedFieldNoCopy(s.content.Object, part...)
		if path := lacking(want, has, strings.Join(part, ".")); want != nil && path != "" {
			return path
		}
	}
	return ""
}

// unserved returns the first version that the wanted definition serves and the current one does
// not.
func (s *standing) unserved(w *wanted) string {
	for _, v := range w.crd.Spec.Versions {
		if v.Served && !slices.ContainsFunc(s.crd.Spec.Versions, func(have apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return have.Name == v.Name && have.Served
		}) {
			return v.Name
		}
	}
	return ""
}

// historyWith returns the history after the wanted definition is applied over the current one,
// which may be nil. With force, the digests after that of the wanted definition are removed: the
// definitions that followed it may be applied again, and those before it are still older.
func (s *standing) historyWith(w *wanted, force bool) (string, error) {
	var digests []string
	if s != nil {
		was, err := digestOf(&s.crd)
		if err != nil {
			return "", err
		}
		digests = append(slices.Clone(s.history), was)
	}
	if at := slices.Index(digests, w.digest); force && at >= 0 {
		digests = digests[:at]
	}
	digests = append(digests, w.digest)
	slices.Reverse(digests)
	var newest []string
	for _, digest := range digests {
		if !slices.Contains(newest, digest) && len(newest) < maxHistory {
			newest = append(newest, digest)
		}
	}
	slices.Reverse(newest)
	return historyForm + " " + strings.Join(newest, " "), nil
}

// lacking returns the path of the first value in want that has lacks. has may have other values,
// except in lists: lists of named items are compared by name, other lists by position, with the
// same length.
func lacking(want, has any, path string) string {
	switch want := want.(type) {
	case map[string]any:
		have, ok := has.(map[string]any)
		if !ok {
			return path
		}
		for _, key := range slices.Sorted(maps.Keys(want)) {
			if missing := lacking(want[key], have[key], path+"."+key); missing != "" {
				return missing
			}
		}
		return ""
	case []any:
		have, ok := has.([]any)
		if !ok {
			return path
		}
		if names, known := byName(have); known {
			for i, item := range want {
				name, named := nameOf(item)
				if !named {
					return fmt.Sprintf("%s[%d]", path, i)
				}
				if missing := lacking(item, names[name], fmt.Sprintf("%s[%s]", path, name)); missing != "" {
					return missing
				}
			}
			return ""
		}
		if len(want) != len(have) {
			return path
		}
		for i, item := range want {
			if missing := lacking(item, have[i], fmt.Sprintf("%s[%d]", path, i)); missing != "" {
				return missing
			}
		}
		return ""
	}
	if !reflect.DeepEqual(numberOf(want), numberOf(has)) {
		return path
	}
	return ""
}

// numberOf converts an integer to a floating point number: a limit is a float in the types, and
// JSON does not distinguish the two. Other values are returned unchanged.
func numberOf(value any) any {
	if n, ok := value.(int64); ok {
		return float64(n)
	}
	return value
}

// byName returns the items of a list by their names, if all of them have one.
func byName(list []any) (map[string]any, bool) {
	items := map[string]any{}
	for _, item := range list {
		name, ok := nameOf(item)
		if !ok {
			return nil, false
		}
		items[name] = item
	}
	return items, len(list) > 0
}

func nameOf(item any) (string, bool) {
	content, _ := item.(map[string]any)
	name, ok := content["name"].(string)
	return name, ok
}
