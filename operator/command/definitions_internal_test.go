package command

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type inlined struct {
	Kept string `json:"kept"`
	Gone string `json:"gone"`
}

type lifelike struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Inlined  inlined            `json:",inline"`
		Renamed  string             `json:"renamed,omitempty"`
		Times    []metav1.Time      `json:"times"`
		Parts    []inlined          `json:"parts"`
		ByName   map[string]inlined `json:"byName"`
		Free     *inlined           `json:"free"`
		Untagged string
		Hidden   string `json:"-"`
	} `json:"spec"`
}

func TestFieldsThatADefinitionHasNoPlaceForAreNamed(t *testing.T) {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	object := func(properties map[string]apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties}
	}
	kept := object(map[string]apiextensionsv1.JSONSchemaProps{"kept": text})
	free := true
	spec := object(map[string]apiextensionsv1.JSONSchemaProps{
		"kept": text, "former": text,
		"times":  {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &text}},
		"parts":  {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &kept}},
		"byName": {Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &kept}},
		"free":   {Type: "object", XPreserveUnknownFields: &free},
	})
	root := object(map[string]apiextensionsv1.JSONSchemaProps{"apiVersion": text, "kind": text, "metadata": {Type: "object"}, "spec": spec})
	got := lackingFields(reflect.TypeFor[*lifelike](), &root, "")
	want := []string{".spec.gone", ".spec.renamed", ".spec.parts[].gone", ".spec.byName[].gone", ".spec.Untagged"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
