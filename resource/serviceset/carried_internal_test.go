package serviceset

import (
	"reflect"
	"testing"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// filled returns a value of a type that is not its zero.
func filled(of reflect.Type) reflect.Value {
	v := reflect.New(of).Elem()
	switch of.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Pointer:
		v.Set(reflect.New(of.Elem()))
	case reflect.Slice:
		v.Set(reflect.Append(v, filled(of.Elem())))
	case reflect.Struct:
		v.Field(0).Set(filled(of.Field(0).Type))
	}
	return v
}

// TestEntriesCarryAllThatAServiceSays holds that no field of a service is forgotten on its way into a set, nor when two entries are compared.
func TestEntriesCarryAllThatAServiceSays(t *testing.T) {
	of := reflect.TypeFor[v1alpha1.ServiceWithValues]()
	for i := range of.NumField() {
		name := of.Field(i).Name
		service := &v1alpha1.Service{Name: "a"}
		if field := reflect.ValueOf(service).Elem().FieldByName(name); field.IsValid() && name != "Template" && name != "Version" {
			field.Set(filled(field.Type()))
			carried := entry(service, v1alpha1.ServiceVersion{}, nil)
			if got := reflect.ValueOf(carried).FieldByName(name); got.IsZero() {
				t.Errorf("%s of a service is not in its entry", name)
			}
		}
		if name == "Name" || name == "Namespace" || name == "Generation" {
			continue // The key, and what follows from the rest.
		}
		var a, b v1alpha1.ServiceWithValues
		reflect.ValueOf(&b).Elem().Field(i).Set(filled(of.Field(i).Type))
		if sameEntry(&a, &b) {
			t.Errorf("entries that differ in %s count as the same", name)
		}
	}
}

func TestWhatIsRemovedKeepsItsServiceAccount(t *testing.T) {
	a := v1alpha1.ServiceSetSpec{Removing: []v1alpha1.ServiceRemoval{{Name: "a"}}}
	b := v1alpha1.ServiceSetSpec{Removing: []v1alpha1.ServiceRemoval{{Name: "a", ServiceAccountName: "deployer"}}}
	if sameSpec(&a, &b) {
		t.Error("sets whose services are removed with other rights count as the same")
	}
	if b.Removing = a.Removing; !sameSpec(&a, &b) {
		t.Error("equal sets count as different")
	}
	if b.ChangeWindows = []v1alpha1.ChangeWindow{{Schedule: "0 0 * * *"}}; sameSpec(&a, &b) {
		t.Error("sets with other windows count as the same")
	}
}
