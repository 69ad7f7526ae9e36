package framework

// HandlesType is a Handles function for sets that handle every object of a type.
func HandlesType[O any](obj any) bool {
	_, ok := obj.(O)
	return ok
}

// HandlesLabel returns a Handles function for sets that handle the objects with a label, such as a
// version.
func HandlesLabel(key, value string) func(obj any) bool {
	return func(obj any) bool {
		m, ok := metaOf(obj)
		return ok && m.GetLabels()[key] == value
	}
}
