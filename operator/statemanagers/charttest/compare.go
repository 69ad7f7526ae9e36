package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/kube"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/internal/cut"
	"github.com/operatorkit/operatorkit/internal/normalize"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// longestValue is how much of a value is shown, in bytes.
const longestValue = 100

// difference is one place where what the state manager has done is not what the reference did.
type difference struct {
	// object is what differs, as people name it: an object, or a record of a release.
	object string
	key    key
	// path is the field, and empty where the whole object is on one side only.
	path string
	// ours and theirs are the values; nil is none.
	ours, theirs any
	// secret is true where values must not be shown.
	secret bool
	// hook is true for the object of a hook that is not there.
	hook bool
	// stays is true for a namespace that is there with something that is not taken away with a release, and for that.
	stays bool
}

// String tells it in a line.
func (d difference) String() string {
	switch {
	case d.path == "" && d.theirs == nil:
		return d.object + " is there, and should not be"
	case d.path == "" && d.ours == nil:
		return d.object + " is not there"
	case d.secret:
		return fmt.Sprintf("%s: %s", d.object, d.path)
	}
	ours, theirs := d.ours, d.theirs
	if a, ok := ours.(string); ok {
		if b, ok := theirs.(string); ok {
			ours, theirs = aroundDifference(a, b)
		}
	}
	return fmt.Sprintf("%s: %s is %s, and should be %s", d.object, d.path, shown(ours), shown(theirs))
}

// aroundDifference returns the lines in which two texts begin to differ, or what is left of them where one ends.
func aroundDifference(a, b string) (string, string) {
	for {
		firstA, restA, moreA := strings.Cut(a, "\n")
		firstB, restB, moreB := strings.Cut(b, "\n")
		switch {
		case firstA != firstB:
			return firstA, firstB
		case !moreA || !moreB:
			return a, b
		}
		a, b = restA, restB
	}
}

func shown(value any) string {
	if value == nil {
		return "not there"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return cut.Text(string(text), longestValue)
}

// parse reads the objects of a YAML stream. Lists count as their items.
func parse(manifest string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifest)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		content, err := yaml.YAMLToJSON(document)
		if err != nil {
			return nil, err
		}
		if strings.TrimSpace(string(content)) == "null" {
			continue
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(content); err != nil {
			return nil, err
		}
		if !u.IsList() {
			all = append(all, u)
			continue
		}
		for _, item := range normalize.Items(u.Object) {
			fields, _ := item.(map[string]any)
			all = append(all, &unstructured.Unstructured{Object: fields})
		}
	}
}

// madeUp are the fields whose values templates make up, such as passwords, by object.
type madeUp map[key]map[string]bool

// madeUpBetween compares two renderings of one version.
func madeUpBetween(first, second []*unstructured.Unstructured) madeUp {
	others := objects{}
	for _, u := range second {
		others[keyOf(u)] = u
	}
	made := madeUp{}
	for _, u := range first {
		other, ok := others[keyOf(u)]
		if !ok {
			continue
		}
		for _, field := range plan.Diff(u.Object, other.Object) {
			if made[keyOf(u)] == nil {
				made[keyOf(u)] = map[string]bool{}
			}
			made[keyOf(u)][field.Path] = true
		}
	}
	return made
}

// has tells whether a field of an object on a cluster, or one that it is in or has in it, is made up. What a Secret says as stringData is
// stored as data, and what says no namespace is put into one.
func (m madeUp) has(k key, path string) bool {
	rendered := k
	rendered.Namespace = ""
	for _, fields := range []map[string]bool{m[k], m[rendered]} {
		for made := range fields {
			made = strings.Replace(made, "stringData", "data", 1)
			if plan.Below(path, made) || plan.Below(made, path) {
				return true
			}
		}
	}
	return false
}

// String names the fields.
func (m madeUp) String() string {
	var names []string
	for k, fields := range m {
		for path := range fields {
			names = append(names, k.String()+" "+path)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// compareObjects compares what there is on two clusters.
func compareObjects(ours, theirs objects, made madeUp) []difference {
	var differences []difference
	holds := map[string]bool{}
	for k, u := range ours {
		holds[k.Namespace] = holds[k.Namespace] || theirs[k] == nil && outlives(u)
	}
	for k, u := range ours {
		if theirs[k] == nil {
			stays := outlives(u) || k.kind == carrier.NamespaceKind && holds[k.Name]
			differences = append(differences, difference{object: k.String(), key: k, ours: u.GetName(), stays: stays})
		}
	}
	for k, u := range theirs {
		mine, ok := ours[k]
		if !ok {
			_, hook := u.GetAnnotations()[releasev1.HookAnnotation]
			differences = append(differences, difference{object: k.String(), key: k, theirs: u.GetName(), hook: hook})
			continue
		}
		for _, field := range plan.Diff(normalized(u), normalized(mine)) {
			if !made.has(k, field.Path) {
				differences = append(differences, difference{
					object: k.String(), key: k, path: field.Path, ours: field.New, theirs: field.Old, secret: u.GetKind() == "Secret",
				})
			}
		}
	}
	slices.SortFunc(differences, func(a, b difference) int {
		return cmp.Or(strings.Compare(a.object, b.object), strings.Compare(a.path, b.path))
	})
	return differences
}

// outlives reports whether an object is not taken away with the release that has brought it.
func outlives(u *unstructured.Unstructured) bool {
	return u.GetKind() == "PersistentVolumeClaim" || u.GetAnnotations()[kube.ResourcePolicyAnno] == kube.KeepPolicy
}

// normalized returns an object without what API servers, controllers and our marks add to it.
func normalized(u *unstructured.Unstructured) map[string]any {
	u = u.DeepCopy()
	delete(u.Object, "status")
	kept := map[string]any{}
	labels := without(u.GetLabels(), carrier.OwnerLabel, carrier.ServiceLabel, carrier.ServiceNamespaceLabel)
	// An API server gives a Job and a ReplicationController without labels, which ours never are, those of their pods.
	ofPods, _, _ := unstructured.NestedMap(u.Object, "spec", "template", "metadata", "labels")
	defaulted := (u.GetKind() == "Job" || u.GetKind() == "ReplicationController") && reflect.DeepEqual(labels, ofPods)
	if len(labels) > 0 && !defaulted {
		kept["labels"] = labels
	}
	// They count the changes of a template, of which a drift is one.
	annotations := without(u.GetAnnotations(), carrier.OwnerAnnotation, "deployment.kubernetes.io/revision", "deprecated.daemonset.template.generation")
	if len(annotations) > 0 {
		kept["annotations"] = annotations
	}
	if finalizers := u.GetFinalizers(); len(finalizers) > 0 {
		kept["finalizers"] = list(finalizers)
	}
	u.Object["metadata"] = kept
	remove := func(fields ...string) { unstructured.RemoveNestedField(u.Object, fields...) }
	switch u.GroupVersionKind().GroupKind() {
	case corev1.SchemeGroupVersion.WithKind("Service").GroupKind():
		if address, _, _ := unstructured.NestedString(u.Object, "spec", "clusterIP"); address != corev1.ClusterIPNone {
			remove("spec", "clusterIP")
			remove("spec", "clusterIPs")
		}
		remove("spec", "healthCheckNodePort")
		ports, _, _ := unstructured.NestedSlice(u.Object, "spec", "ports")
		for _, port := range ports {
			delete(port.(map[string]any), "nodePort")
		}
		if len(ports) > 0 {
			_ = unstructured.SetNestedSlice(u.Object, ports, "spec", "ports")
		}
	case carrier.JobKind:
		remove("spec", "selector")
		for _, label := range []string{"controller-uid", "batch.kubernetes.io/controller-uid"} {
			remove("spec", "template", "metadata", "labels", label)
		}
	case corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim").GroupKind():
		remove("spec", "volumeName")
	}
	return u.Object
}

// without returns a map without some of its entries, as JSON has it.
func without(from map[string]string, names ...string) map[string]any {
	rest := map[string]any{}
	for name, value := range from {
		if !slices.Contains(names, name) {
			rest[name] = value
		}
	}
	return rest
}

func list(texts []string) []any {
	all := make([]any, len(texts))
	for i, text := range texts {
		all[i] = text
	}
	return all
}

// compareRecords compares the revisions of a release.
func compareRecords(ours, theirs []*releasev1.Release, made madeUp) ([]difference, error) {
	if len(ours) != len(theirs) {
		return []difference{{object: "the release", path: "number of revisions", ours: len(ours), theirs: len(theirs)}}, nil
	}
	var differences []difference
	for i := range theirs {
		object := fmt.Sprintf("revision %d of the release", theirs[i].Version)
		mine, err := normalizedRecord(ours[i])
		if err != nil {
			return nil, err
		}
		other, err := normalizedRecord(theirs[i])
		if err != nil {
			return nil, err
		}
		if len(made) > 0 {
			if err := same(mine, other, made); err != nil {
				return nil, err
			}
		}
		for _, field := range plan.Diff(other, mine) {
			differences = append(differences, difference{object: object, path: field.Path, ours: field.New, theirs: field.Old})
		}
	}
	return differences, nil
}

// same makes the manifests and notes of two records the same that differ in fields only which templates make up.
func same(mine, other map[string]any, made madeUp) error {
	type holder struct{ mine, other map[string]any }
	holders := []holder{{mine, other}}
	ours, _ := mine["hooks"].([]any)
	theirs, _ := other["hooks"].([]any)
	for i := range min(len(ours), len(theirs)) {
		holders = append(holders, holder{ours[i].(map[string]any), theirs[i].(map[string]any)})
	}
	for _, h := range holders {
		a, _ := h.mine["manifest"].(string)
		b, _ := h.other["manifest"].(string)
		if a == b {
			continue
		}
		first, err := parse(a)
		if err != nil {
			return err
		}
		second, err := parse(b)
		if err != nil {
			return err
		}
		between := madeUpBetween(first, second)
		for k, fields := range between {
			maps.DeleteFunc(fields, func(path string, _ bool) bool { return made[k][path] })
			if len(fields) == 0 {
				delete(between, k)
			}
		}
		if len(between) == 0 && len(first) == len(second) {
			h.mine["manifest"] = b
		}
	}
	for _, record := range []map[string]any{mine, other} {
		if info, ok := record["info"].(map[string]any); ok {
			delete(info, "notes")
		}
	}
	return nil
}

// normalizedRecord returns a record without times and our marks.
func normalizedRecord(r *releasev1.Release) (map[string]any, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	record := map[string]any{}
	if err := json.Unmarshal(text, &record); err != nil {
		return nil, err
	}
	// The last two are times that Helm's storage keeps.
	labels := without(r.Labels, carrier.OwnerLabel, carrier.ServiceLabel, carrier.ServiceNamespaceLabel, "createdAt", "modifiedAt")
	if len(labels) > 0 {
		record["labels"] = labels
	}
	timeless(record)
	if config, ok := record["config"].(map[string]any); ok && len(config) == 0 {
		delete(record, "config")
	}
	return record, nil
}

// times are the fields of a record, of its hooks and of the files of its chart that say when.
var times = []string{"first_deployed", "last_deployed", "deleted", "started_at", "completed_at", "modtime", "schemamodtime"}

// timeless takes the times away, but for what has such a name among values.
func timeless(value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			switch {
			case slices.Contains(times, name):
				delete(value, name)
			case name != "config" && name != "values":
				timeless(field)
			}
		}
	case []any:
		for _, element := range value {
			timeless(element)
		}
	}
}
