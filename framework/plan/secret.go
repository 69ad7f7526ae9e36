package plan

import "k8s.io/apimachinery/pkg/runtime/schema"

// shown are the fields of Secrets whose values may be shown. Of annotations these are our own: others may repeat the data,
// as the one of kubectl apply does.
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

// ShownOfSecret tells whether the value of a field of a Secret, or of another Kubernetes object that is sensitive, may be
// shown.
func ShownOfSecret(path string) bool { return Below(path, shown...) }

// isSecret tells whether an object is a Secret. A kind without an API version, which is the name of a Go type, is taken for
// one.
func isSecret(apiVersion, kind string) bool {
	if kind != "Secret" {
		return false
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	return err == nil && gv.Group == ""
}
