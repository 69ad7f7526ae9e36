package natsresource

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/operatorkit/operatorkit/informer/natsinformer"
)

// copyOf returns a copy of an entity whose metadata are its own. What else it points to is shared.
func copyOf[T natsinformer.Entity](entity T) T {
	given := reflect.ValueOf(entity).Elem()
	made := reflect.New(given.Type())
	made.Elem().Set(given)
	c := made.Interface().(T)
	*c.EntityMeta() = entity.EntityMeta().DeepCopy()
	return c
}

// fieldsOf returns an entity as the fields of its JSON.
func fieldsOf(entity any) (map[string]any, error) {
	data, err := json.Marshal(entity)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := utiljson.Unmarshal(data, &fields); err != nil {
		return nil, fmt.Errorf("as JSON it must be an object: %w", err)
	}
	return fields, nil
}

// metaPath returns the name of the field that holds the metadata in the JSON of entities of type T. It is empty when they
// stand among the other fields.
func metaPath[T natsinformer.Entity]() string {
	field, ok := reflect.TypeFor[T]().Elem().FieldByName("Meta")
	if !ok || field.Type != reflect.TypeFor[natsinformer.Meta]() || len(field.Index) > 1 {
		return ""
	}
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}
