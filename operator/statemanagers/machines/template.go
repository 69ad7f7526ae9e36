package machines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	strictjson "sigs.k8s.io/json"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/internal/normalize"
	machinesv1alpha1 "github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/manifest"
)

// wanted is a service as it should be.
type wanted struct {
	*native.Input
	// spec is that of its MachineService, with the values merged in.
	spec map[string]any
	// labels and annotations are those of the manifest and ours.
	labels, annotations map[string]string
	// fingerprint stands for it all.
	fingerprint string
}

// expects says in errors what a template has to be.
const expects = "on machines a template has spec.resources with one manifest of kind " + machinesv1alpha1.MachineServiceKind

// render makes what a service should be. Errors are permanent but for those of fetching, and tell nothing secret.
func render(ctx context.Context, input *native.Input) (*wanted, error) {
	w := &wanted{Input: input}
	if input.Entry.ServiceAccountName != "" || input.Config.ServiceAccountName != "" {
		return nil, framework.Permanent(errors.New("machines have no service accounts: leave serviceAccountName out"))
	}
	if input.Windows {
		return nil, framework.Permanent(errors.New("machines have no changeWindows: leave them out"))
	}
	if e := input.Entry; e.Adopt || e.MaxAttempts > 0 || len(e.Patches) > 0 || len(e.HealthCheckExprs) > 0 || len(e.IgnoreDifferences) > 0 {
		return nil, framework.Permanent(errors.New("machines have no adopt, maxAttempts, patches, healthCheckExprs and ignoreDifferences: leave them out"))
	}
	object, err := w.manifest(ctx)
	if err != nil {
		return nil, err
	}
	values, err := plain(input.Values)
	if err != nil {
		return nil, framework.Permanent(fmt.Errorf("the values are nothing that JSON can say: %w", input.Err(err)))
	}
	spec, _ := object.Object["spec"].(map[string]any)
	object.Object["spec"] = merge(spec, values)
	input.Conceal(secretsIn(object.Object["spec"]))
	if w.fromSecret() {
		input.Conceal(textsIn(object.Object["spec"]))
	}
	if err := w.check(object); err != nil {
		return nil, framework.Permanent(fmt.Errorf("template %s with the values of the service: %w", input.Template.Name, input.Err(err)))
	}
	w.spec, _ = object.Object["spec"].(map[string]any)
	delete(w.spec, "name")
	return w, w.mark(object)
}

// manifest returns the manifest of the template.
func (w *wanted) manifest(ctx context.Context) (*unstructured.Unstructured, error) {
	template := w.Template
	fault := func(format string, args ...any) error {
		return framework.Permanent(fmt.Errorf("template %s: %w", template.Name, w.Err(fmt.Errorf(format, args...))))
	}
	switch {
	case template.Spec.Helm != nil:
		return nil, fault("it is a Helm chart: %s", expects)
	case template.Spec.Kustomize != nil:
		return nil, fault("it is a kustomization: %s", expects)
	}
	files, folder, err := w.Source.Files(ctx)
	if err != nil {
		return nil, err
	}
	documents, err := manifest.Documents(files.FS, folder, manifest.Limits{})
	switch {
	case err != nil && w.fromSecret():
		// The error may quote the text.
		return nil, fault("its Secret has no manifests in YAML: %s", expects)
	case err != nil:
		return nil, fault("%w", err)
	}
	var names []string
	for _, d := range documents {
		object, _ := d.Value.(map[string]any)
		u := &unstructured.Unstructured{Object: object}
		if u.GetAPIVersion() != machinesv1alpha1.GroupVersion.String() || u.GetKind() != machinesv1alpha1.MachineServiceKind {
			return nil, fault("%s: it has an object of kind %q of %q: %s of %s",
				d.File, u.GetKind(), u.GetAPIVersion(), expects, machinesv1alpha1.GroupVersion)
		}
		names = append(names, d.File)
	}
	if len(documents) != 1 {
		return nil, fault("it has %d manifests, in %s: %s", len(documents), strings.Join(slices.Compact(names), ", "), expects)
	}
	object := documents[0].Value.(map[string]any)
	if err := normalize.Check(object); err != nil {
		return nil, fault("%s: %w", documents[0].File, err)
	}
	normalize.Object(object)
	return &unstructured.Unstructured{Object: object}, nil
}

// fromSecret tells whether the manifest itself is in a Secret.
func (w *wanted) fromSecret() bool {
	local := w.Template.Spec.Resources.LocalSource
	return local != nil && local.Kind == statemanager.KindSecret
}

// check finds what is wrong before anything is written: fields that there are not, and faults of the specification.
func (w *wanted) check(object *unstructured.Unstructured) error {
	if err := checkQuantities(object.Object); err != nil {
		return err
	}
	encoded, err := json.Marshal(object.Object)
	if err != nil {
		return err
	}
	service := &machinesv1alpha1.MachineService{}
	unknown, err := strictjson.UnmarshalStrict(encoded, service)
	if err != nil {
		return err
	}
	if len(unknown) > 0 {
		return errors.Join(unknown...)
	}
	if name := service.Spec.Name; name != "" && name != w.Key.Name {
		return fmt.Errorf("spec.name is %q, but the name is that of the service: leave it out", name)
	}
	service.Spec.Name = w.Key.Name
	if err := service.Spec.Validate(); err != nil {
		return fmt.Errorf("spec: %w", err)
	}
	return nil
}

// checkQuantities refuses quantities that would take hours to be read.
func checkQuantities(object map[string]any) error {
	resources, _, _ := unstructured.NestedFieldNoCopy(object, "spec", "container", "resources")
	limits, _ := resources.(map[string]any)
	volumes, _, _ := unstructured.NestedFieldNoCopy(object, "spec", "volumes")
	list, _ := volumes.([]any)
	var errs []error
	check := func(path string, value any) {
		if text, ok := value.(string); ok && !api.IsQuantity(text) {
			errs = append(errs, fmt.Errorf("%s: %.60q is no quantity: write a number with a unit, such as 500m or 1.5Gi", path, text))
		}
	}
	for _, name := range []string{"cpu", "memory", "memoryReservation", "shmSize"} {
		check("spec.container.resources."+name, limits[name])
	}
	for i, volume := range list {
		fields, _ := volume.(map[string]any)
		check(fmt.Sprintf("spec.volumes[%d].size", i), fields["size"])
	}
	return errors.Join(errs...)
}

// mark adds what tells whose it is.
func (w *wanted) mark(object *unstructured.Unstructured) error {
	content, err := json.Marshal([]any{w.spec, object.GetLabels(), object.GetAnnotations()})
	if err != nil {
		return framework.Permanent(err)
	}
	rendered, err := statemanager.Fingerprint(w.Owner.UID, json.RawMessage(content))
	if err != nil {
		return framework.Permanent(err)
	}
	w.fingerprint = w.Fingerprint + rendered[:16]
	w.labels, w.annotations = map[string]string{}, map[string]string{}
	maps.Copy(w.labels, object.GetLabels())
	maps.Copy(w.labels, carrier.LabelsOf(w.Service))
	maps.Copy(w.annotations, object.GetAnnotations())
	maps.Copy(w.annotations, map[string]string{
		carrier.OwnerAnnotation: w.Owner.String(), SetAnnotation: w.Owner.Namespace + "/" + w.Owner.Name, FingerprintAnnotation: w.fingerprint,
		TemplateAnnotation: w.Entry.Template, VersionAnnotation: w.Entry.Version,
	})
	if paths := w.confidential(); len(paths) > 0 {
		w.annotations[ConfidentialAnnotation] = strings.Join(paths, " ")
	}
	return nil
}

// confidential returns the paths of what comes from Secrets, in order.
func (w *wanted) confidential() []string {
	if w.fromSecret() {
		return []string{"metadata", "spec"}
	}
	paths := maskedIn("spec", w.Secret)
	slices.Sort(paths)
	return paths
}

// maskedIn returns the paths of what is true in a mask. One that has a space ends above it.
func maskedIn(path string, mask map[string]any) []string {
	var paths []string
	for name, value := range mask {
		below := path + plan.Segment(name)
		inner, isMap := value.(map[string]any)
		switch {
		case strings.Contains(below, " "):
			paths = append(paths, path)
		case isMap:
			paths = append(paths, maskedIn(below, inner)...)
		default:
			paths = append(paths, below)
		}
	}
	return paths
}

// merge returns a map with values merged in: maps are merged, null takes a field away, anything else is replaced. Neither is
// changed.
func merge(into, values map[string]any) map[string]any {
	merged := maps.Clone(into)
	if merged == nil {
		merged = map[string]any{}
	}
	for name, value := range values {
		below, isMap := value.(map[string]any)
		switch {
		case value == nil:
			delete(merged, name)
		case isMap:
			before, _ := merged[name].(map[string]any)
			merged[name] = merge(before, below)
		default:
			merged[name] = value
		}
	}
	return merged
}

// plain returns values as objects have them, with whole numbers as int64.
func plain(values map[string]any) (map[string]any, error) {
	encoded, err := json.Marshal(values)
	if err != nil {
		return nil, err
	}
	decoded := map[string]any{}
	return decoded, utiljson.Unmarshal(encoded, &decoded)
}

// secretsIn returns the texts of a specification that must not be shown, whoever has put them there.
func secretsIn(spec any) []string {
	fields, _ := spec.(map[string]any)
	secret, _, _ := unstructured.NestedMap(fields, "container", "secretEnv")
	var texts []string
	for _, value := range secret {
		if text, ok := value.(string); ok {
			texts = append(texts, text)
		}
	}
	configs, _, _ := unstructured.NestedSlice(fields, "configs")
	for _, config := range configs {
		fields, _ := config.(map[string]any)
		if text, ok := fields["content"].(string); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// textsIn returns all texts of a JSON value.
func textsIn(value any) (texts []string) {
	switch value := value.(type) {
	case string:
		return []string{value}
	case []any:
		for _, element := range value {
			texts = append(texts, textsIn(element)...)
		}
	case map[string]any:
		for _, field := range value {
			texts = append(texts, textsIn(field)...)
		}
	}
	return texts
}
