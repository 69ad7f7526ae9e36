package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// warnOfDefinitions logs warnings of kinds of the operator's own groups for which it has no definition, and of fields of its types for which
// the definition has no place: the API server drops them. Both are forgotten when a type changes and nothing is generated.
func (p *program) warnOfDefinitions(parts *parts) {
	warn := func(fields ...any) {
		parts.logger.Log(append([]any{"level", "warning", "remedy", "generate the definitions again, such as by make generate"}, fields...)...)
	}
	groups, versions := map[string]bool{}, map[schema.GroupVersionKind]*apiextensionsv1.CustomResourceDefinitionVersion{}
	for _, crd := range p.config.CRDs {
		groups[crd.Spec.Group] = true
		for i, v := range crd.Spec.Versions {
			versions[schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}] = &crd.Spec.Versions[i]
		}
	}
	for _, f := range parts.frameworks {
		for _, s := range f.Sources() {
			source, ok := s.(interface {
				GroupVersionKind() schema.GroupVersionKind
			})
			if !ok || !groups[source.GroupVersionKind().Group] {
				continue
			}
			gvk := source.GroupVersionKind()
			version := versions[gvk]
			if version == nil {
				warn("message", "the operator looks at a kind of its group and has no definition of it", "kind", gvk.String())
				continue
			}
			typed, err := parts.deps.Client.Scheme().New(gvk)
			if err != nil || version.Schema == nil {
				continue
			}
			if lacking := lackingFields(reflect.TypeOf(typed), version.Schema.OpenAPIV3Schema, ""); len(lacking) > 0 {
				warn("message", "the definition has no place for fields of the Go type, and the API server drops them", "kind", gvk.String(), "fields", strings.Join(lacking, ", "))
			}
		}
	}
}

var marshaler = reflect.TypeFor[json.Marshaler]()

// lackingFields are the paths of the fields of a type for which a schema has no place. Types that write their JSON themselves, and what is
// preserved whatever it is, have places for all.
func lackingFields(t reflect.Type, s *apiextensionsv1.JSONSchemaProps, path string) []string {
	if t.Kind() == reflect.Pointer {
		return lackingFields(t.Elem(), s, path)
	}
	preserved := s == nil || s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields
	if preserved || t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler) {
		return nil
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		if s.Items != nil {
			return lackingFields(t.Elem(), s.Items.Schema, path+"[]")
		}
	case reflect.Map:
		if s.AdditionalProperties != nil {
			return lackingFields(t.Elem(), s.AdditionalProperties.Schema, path+"[]")
		}
	case reflect.Struct:
		var lacking []string
		for _, field := range reflect.VisibleFields(t) {
			if len(field.Index) > 1 || !field.IsExported() {
				continue // that of an embedded type is found there
			}
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			inline := name == "" && (field.Anonymous || slices.Contains(strings.Split(options, ","), "inline"))
			property, known := s.Properties[cmp.Or(name, field.Name)]
			switch {
			case name == "-" || path == "" && name == "metadata":
			case inline:
				lacking = append(lacking, lackingFields(field.Type, s, path)...)
			case !known:
				lacking = append(lacking, fmt.Sprintf("%s.%s", path, cmp.Or(name, field.Name)))
			default:
				lacking = append(lacking, lackingFields(field.Type, &property, path+"."+name)...)
			}
		}
		return lacking
	}
	return nil
}
