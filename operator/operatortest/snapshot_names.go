package operatortest

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// names replaces the names that differ from run to run by ones that do not: those of
// the namespace, of objects with generated names, and UIDs.
type names struct {
	generated map[string]string
	replacer  *strings.Replacer
}

func newNames(objects []*unstructured.Unstructured, namespace string) names {
	n := names{generated: map[string]string{}}
	pairs := map[string]string{namespace: "<namespace>"}
	for _, object := range objects {
		prefix, name := object.GetGenerateName(), object.GetName()
		if prefix != "" && strings.HasPrefix(name, prefix) {
			n.generated[name] = prefix + "*"
			pairs[name] = prefix + "*"
		}
	}
	for uid, text := range n.uids(objects) {
		pairs[uid] = text
	}

	olds := make([]string, 0, len(pairs))
	for old := range pairs {
		olds = append(olds, old)
	}
	slices.SortFunc(olds, func(a, b string) int { // the longest first, so that it wins over its parts
		return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
	})
	oldnew := make([]string, 0, 2*len(olds))
	for _, old := range olds {
		oldnew = append(oldnew, old, pairs[old])
	}
	n.replacer = strings.NewReplacer(oldnew...)
	return n
}

// uids returns a text for each UID that the objects have or refer to as their
// owner's. An owner that is gone is told from one that came after it by the same name.
func (n names) uids(objects []*unstructured.Unstructured) map[string]string {
	texts := map[string]string{}
	there := map[string]bool{}
	for _, object := range objects {
		title := object.GetKind() + " " + n.name(object.GetName())
		there[title] = true
		if uid := string(object.GetUID()); uid != "" {
			texts[uid] = "<uid of " + title + ">"
		}
	}
	for _, object := range objects {
		for _, owner := range object.GetOwnerReferences() {
			uid, title := string(owner.UID), owner.Kind+" "+n.name(owner.Name)
			if _, known := texts[uid]; known || uid == "" {
				continue
			}
			texts[uid] = "<uid of " + title + ">"
			if there[title] {
				texts[uid] = "<uid of an earlier " + title + ">"
			}
		}
	}
	return texts
}

func (n names) name(name string) string {
	if generated, ok := n.generated[name]; ok {
		return generated
	}
	return name
}

func (n names) title(object *unstructured.Unstructured) string {
	return titleOf(object.GroupVersionKind().GroupKind(), n.replacer.Replace(object.GetName()))
}

// titleOf is by what an object of a name that is the same in every run is known in all of them.
func titleOf(kind schema.GroupKind, name string) string { return kind.String() + " " + name }

var (
	uuidPattern = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	timePattern = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)
)

func (n names) text(text string) string {
	text = n.replacer.Replace(text)
	text = uuidPattern.ReplaceAllString(text, "<uid>")
	return timePattern.ReplaceAllString(text, "<time>")
}

func (n names) neutral(content map[string]any) map[string]any {
	neutral := make(map[string]any, len(content))
	for key, value := range content {
		neutral[n.text(key)] = n.value(value)
	}
	return neutral
}

func (n names) value(value any) any {
	switch value := value.(type) {
	case string:
		return n.text(value)
	case map[string]any:
		return n.neutral(value)
	case []any:
		values := make([]any, len(value))
		for i, element := range value {
			values[i] = n.value(element)
		}
		return values
	}
	return value
}
