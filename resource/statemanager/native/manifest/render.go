package manifest

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/internal/normalize"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// SubstituteAnnotation keeps the references in an object as they are: its value is "disabled".
const SubstituteAnnotation = "services.operatorkit.io/substitute"

// disabled is the value of annotations that switch something off.
const disabled = "disabled"

// manifest is one object as a service wants it.
type manifest struct {
	// File is where it comes from.
	File string
	// Sensitive is true when no value of it may be shown.
	Sensitive bool
	// Object is the object.
	Object *unstructured.Unstructured
}

// document is an object that was read and has its references still.
type document struct {
	file string
	// value is the JSON value of it, with whole numbers as int64.
	value any
}

// String names the document in errors.
func (d document) String() string {
	kind, name := textOf(d.value, "kind"), textOf(d.value, "metadata", "name")
	if kind == "" || name == "" {
		return d.file
	}
	return fmt.Sprintf("%s: %s %s", d.file, kind, name)
}

// render makes the objects of a service. Errors are permanent, but for those of the source: what they are made of has to
// change.
func (c *Carrier) render(ctx context.Context, service *carrier.Service) ([]manifest, error) {
	files, folder, err := service.Source.Files(ctx)
	if err != nil {
		return nil, err
	}
	budget := &budget{limits: c.config.Limits}
	source := service.Template.Spec.Resources
	var documents []document
	if kustomize := service.Template.Spec.Kustomize; kustomize != nil {
		source = kustomize
		documents, err = c.build(ctx, files.FS, folder, budget)
	} else {
		documents, err = readFolder(files.FS, folder, budget)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, framework.Permanent(fmt.Errorf("template %s: %w", service.Template.Name, err))
	}

	confidential := source != nil && source.LocalSource != nil && source.LocalSource.Kind == "Secret"
	values := newValues(service.Values, service.Secret)
	manifests, err := c.finish(documents, values, budget, confidential)
	if err != nil {
		return nil, framework.Permanent(fmt.Errorf("template %s: %w", service.Template.Name, err))
	}
	return patched(ctx, service, manifests)
}

// finish replaces the references in documents and makes objects of them.
func (c *Carrier) finish(documents []document, values values, budget *budget, confidential bool) ([]manifest, error) {
	var manifests []manifest
	from := map[carrier.Identity]string{}
	for _, d := range documents {
		d, secret, err := values.replace(d, budget)
		if err != nil {
			return nil, err
		}
		object, err := objectOf(d)
		if err != nil {
			return nil, err
		}
		if first, twice := from[carrier.IdentityOf(object)]; twice {
			return nil, fmt.Errorf("%s is there twice, the other one is in %s: keep one of them", d, first)
		}
		from[carrier.IdentityOf(object)] = d.file
		manifests = append(manifests, manifest{File: d.file, Sensitive: secret || confidential || isSecret(object), Object: object})
	}
	if len(manifests) == 0 {
		return nil, fmt.Errorf("there is no object in it")
	}
	return manifests, nil
}

// objectOf makes an object of a document.
func objectOf(d document) (*unstructured.Unstructured, error) {
	content, ok := d.value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s: it is no object: it needs apiVersion, kind and metadata", d)
	}
	object := &unstructured.Unstructured{Object: content}
	if metadata, ok := content["metadata"].(map[string]any); !ok || metadata["name"] == nil {
		return nil, fmt.Errorf("%s: it has no metadata.name: generateName does not do, since an object is found again by its name", d)
	}
	if object.GetKind() == "" || object.GetAPIVersion() == "" || object.GetName() == "" {
		return nil, fmt.Errorf("%s: it needs apiVersion, kind and metadata.name, which are text", d)
	}
	if err := normalize.Check(content); err != nil {
		return nil, fmt.Errorf("%s: %w", d, err)
	}
	normalize.Object(content)
	if namespace := object.GetNamespace(); namespace != "" {
		if faults := validation.IsDNS1123Label(namespace); len(faults) > 0 {
			return nil, fmt.Errorf("%s: metadata.namespace is %q: %s", d, namespace, strings.Join(faults, ", "))
		}
	}
	unstructured.RemoveNestedField(content, "status")
	for _, field := range []string{"resourceVersion", "uid", "creationTimestamp", "managedFields", "generation", "selfLink"} {
		unstructured.RemoveNestedField(content, "metadata", field)
	}
	return object, nil
}

// typeOf returns what kind of service a template makes.
func typeOf(template *v1alpha1.ServiceTemplate) v1alpha1.ServiceType {
	if template.Spec.Kustomize != nil {
		return v1alpha1.ServiceTypeKustomize
	}
	return v1alpha1.ServiceTypeResource
}
