package main

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/manifest"
)

// deviation is something that the state manager does otherwise on purpose, and the line of the documentation that says so.
type deviation struct {
	// file has the line, in the repository.
	file, line string
	// explains tells whether a difference after a step is one of it; nil is no difference.
	explains func(t *trial, step string, d difference) bool
	// allows tells whether it is what lets the state manager do what Helm refuses with this error; nil is no error.
	allows func(t *trial, refused error) bool
}

// deviations are all of them. Another one is a line here, and one in the documentation.
var deviations = []*deviation{
	{
		file: "resource/statemanager/native/helm/doc.go",
		line: "unlike Helm, which never updates them",
		explains: func(t *trial, step string, d difference) bool {
			return step != "install" && (d.path != "" || d.theirs == nil) && d.key.kind == definitionKind && slices.Contains(t.definitions(), d.key.Name)
		},
		allows: func(t *trial, refused error) bool {
			return len(t.definitions()) > 0 && strings.Contains(refused.Error(), "ensure CRDs are installed first")
		},
	},
	{
		file:     "resource/statemanager/native/helm/doc.go",
		line:     "A removal deletes what hooks have left behind, unlike Helm, which leaves it",
		explains: func(_ *trial, step string, d difference) bool { return step == "removal" && d.ours == nil && d.hook },
	},
	{
		file:     "resource/statemanager/native/helm/doc.go",
		line:     "A namespace stays with anything in it that is not of the service",
		explains: func(_ *trial, step string, d difference) bool { return step == "removal" && d.stays },
	},
	{
		file: "resource/statemanager/native/helm/doc.go",
		line: "unlike Helm, a key that a chart withdraws from stringData goes",
		explains: func(t *trial, step string, d difference) bool {
			return t.subject.old.chart != nil && step != "install" && d.secret && d.ours == nil && plan.Below(d.path, "data")
		},
	},
	{
		file: "resource/statemanager/native/carrier/doc.go",
		line: "Server-side apply leaves what nobody has applied, so that the other branch of a choice stays",
		allows: func(_ *trial, refused error) bool {
			return strings.Contains(refused.Error(), "Forbidden: may not be specified when")
		},
	},
	{
		file: "resource/statemanager/native/manifest/doc.go",
		line: "A Secret in the namespace of the service, with the labels of [carrier.LabelsOf], has the names of its objects",
		explains: func(t *trial, step string, d difference) bool {
			return step != "removal" && d.path == "" && d.theirs == nil && d.key.Namespace == t.subject.namespace() &&
				d.key.kind == schema.GroupKind{Kind: "Secret"} && d.key.Name == manifest.InventoryPrefix+t.subject.id
		},
	},
	{
		file: "resource/statemanager/native/manifest/doc.go",
		line: "app.kubernetes.io/managed-by: operatorkit",
		explains: func(t *trial, _ string, d difference) bool {
			return t.subject.old.chart == nil && d.key.kind == schema.GroupKind{Kind: "Namespace"} && d.key.Name == t.subject.namespace() &&
				d.path == "metadata.labels"+plan.Segment("app.kubernetes.io/managed-by")
		},
	},
}

// explain divides differences into those that no documentation explains, and the documented deviations that explain the others.
func (t *trial) explain(found []difference, step string) (unexplained []difference, by []*deviation) {
	for _, d := range found {
		var explained *deviation
		for _, each := range deviations {
			if explained == nil && each.explains != nil && each.explains(t, step, d) {
				explained = each
			}
		}
		if explained == nil {
			unexplained = append(unexplained, d)
		} else {
			by = append(by, explained)
		}
	}
	return unexplained, by
}

// definitions are the names of the definitions that the versions of the subject have in crds/.
func (t *trial) definitions() []string {
	var names []string
	for _, v := range []*version{t.subject.old, t.subject.updated} {
		if v == nil || v.chart == nil {
			continue
		}
		c, err := v.load()
		if err != nil {
			continue
		}
		for _, file := range c.CRDObjects() {
			parsed, _ := parse(string(file.File.Data)) // What can't be read has no name.
			for _, u := range parsed {
				names = append(names, u.GetName())
			}
		}
	}
	return names
}
