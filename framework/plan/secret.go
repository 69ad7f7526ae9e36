package plan

import (
	"encoding/base64"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// shown are the fields of Secrets with values that may be shown. The annotations in it are only our
// own: others may repeat the data, as the annotation of kubectl apply does.
var shown = []string{
	"apiVersion",
	"kind",
	"type",
	"immutable",
	"metadata.name",
	"metadata.namespace",
	"metadata.labels",
	"metadata.ownerReferences",
	"metadata.finalizers",
	"metadata.deletionTimestamp",
	"metadata.annotations" + Segment("operatorkit.io/owner"),
	"metadata.annotations" + Segment("operatorkit.io/operator"),
	"metadata.annotations" + Segment("operatorkit.io/framework"),
	"metadata.annotations" + Segment("operatorkit.io/resource"),
	"metadata.annotations" + Segment("operatorkit.io/applied"),
}

// ShownOfSecret reports whether the value of a field of a Secret, or of another sensitive
// Kubernetes object, may be shown.
func ShownOfSecret(path string) bool { return Below(path, shown...) }

// isSecret reports whether an object is a Secret. A kind without an API version, which is the name
// of a Go type, counts as well.
func isSecret(apiVersion, kind string) bool {
	if kind != "Secret" {
		return false
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	return err == nil && gv.Group == ""
}

// hasSecretKind reports whether a JSON object has the kind of a Secret. A mere reference to a
// Secret has no data.
func hasSecretKind(object map[string]any) bool {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	return isSecret(apiVersion, kind) && (apiVersion != "" || isMap(object["data"]) || isMap(object["stringData"]))
}

// looksLikeSecret is hasSecretKind for an object that may lack its kind, like the items of a list.
// It also accepts objects without a kind and with data that are all base64.
func looksLikeSecret(object map[string]any) bool {
	if kind, _ := object["kind"].(string); kind != "" {
		return hasSecretKind(object)
	}
	if isMap(object["stringData"]) {
		return true
	}
	data, _ := object["data"].(map[string]any)
	if _, typed := object["type"].(string); len(data) == 0 || !typed && !isMap(object["metadata"]) {
		return false
	}
	for _, value := range data {
		text, ok := value.(string)
		if _, err := base64.StdEncoding.DecodeString(text); !ok || err != nil {
			return false
		}
	}
	return true
}

func isMap(value any) bool {
	_, ok := value.(map[string]any)
	return ok
}

// isSecretList reports whether a JSON object is a list of Secrets. The items need not have a kind.
func isSecretList(object map[string]any) bool {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	return kind == "SecretList" && isSecret(apiVersion, "Secret")
}

var (
	kindOfSecret   = regexp.MustCompile(`\bkind\\*["']?\s*:\s*\\*["']?Secret(List)?\b`)
	valuesOfSecret = regexp.MustCompile(`\b(data|stringData)\\*["']?\s*:`)
)

// quotesSecret reports whether a text holds the manifest of a Secret, in JSON or YAML, or is the
// base64 of one.
func quotesSecret(text string) bool {
	if decoded, err := base64.StdEncoding.DecodeString(text); err == nil {
		text = string(decoded)
	}
	return strings.Contains(text, "Secret") && kindOfSecret.MatchString(text) && valuesOfSecret.MatchString(text)
}
