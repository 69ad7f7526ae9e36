package plan

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Describing returns the change with the labels and annotations of the Kubernetes object that
// changes: for an update or a deletion the object as it is, for a creation as it will be. The kind
// must be set already. Annotations that may repeat the values of a Secret are left out, and so is
// that of kubectl apply. It is for a Changer, whose changes are not described by Describe.
func (c Change) Describing(o metav1.Object) Change {
	c.Labels = maps.Clone(o.GetLabels())
	c.Annotations = maps.Clone(o.GetAnnotations())
	secret := isSecret(c.Object.APIVersion, c.Object.Kind)
	maps.DeleteFunc(c.Annotations, func(name, value string) bool {
		return name == corev1.LastAppliedConfigAnnotation || quotesSecret(value) ||
			secret && !ShownOfSecret("metadata.annotations"+Segment(name))
	})
	if len(c.Annotations) == 0 {
		c.Annotations = nil
	}
	return c
}

// Bare returns the change without what may differ from one look at the object to the next although
// the change is the same: the version of the object, its labels and its annotations.
func (c Change) Bare() Change {
	c.Object.Version, c.Labels, c.Annotations = "", nil, nil
	return c
}

// Bare returns a copy of the plan with bare changes, and without the version of the object.
func (p *Plan) Bare() *Plan {
	bare := *p
	bare.Object.Version = ""
	bare.Resources = slices.Clone(p.Resources)
	for i := range bare.Resources {
		r := &bare.Resources[i]
		r.Changes = slices.Clone(r.Changes)
		for j, c := range r.Changes {
			r.Changes[j] = c.Bare()
		}
	}
	return &bare
}

func scrubTexts(texts map[string]string, scrub func(string) string) map[string]string {
	if texts == nil {
		return nil
	}
	scrubbed := make(map[string]string, len(texts))
	for name, text := range texts {
		scrubbed[scrub(name)] = scrub(text)
	}
	return scrubbed
}

// Replaced begins the description of a change that deletes an object to create it again, because it
// can't be updated.
const Replaced = "replaced: "

// Replaces reports whether the change deletes an object to create it again.
func (c Change) Replaces() bool { return strings.HasPrefix(c.Description, Replaced) }

// Shown returns an object as a JSON value, in which Redacted replaces the values of Secrets and
// others that must not be shown. Every text is replaced by the result of scrub.
func Shown(value any, scrub func(string) string) any {
	v := reflect.ValueOf(value)
	if !v.IsValid() || nillable(v) && v.IsNil() {
		return nil
	}
	o, ok := kubernetesObject(recognized(v))
	if !ok {
		return scrubValue(encoder{}.encode(value), scrub)
	}
	fields, ok := encoder{}.full(o).(map[string]any)
	if !ok {
		return Redacted
	}
	if confidential(v) {
		hideValues(fields, "")
	}
	if fields["kind"] == nil {
		name := o.name()
		fields["apiVersion"], fields["kind"] = name.APIVersion, name.Kind
	}
	return scrubValue(fields, scrub)
}
