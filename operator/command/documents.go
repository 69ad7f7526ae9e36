package command

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/internal/normalize"
)

// document is an object from a file.
type document struct {
	object *unstructured.Unstructured
	// place says where it stands, for errors.
	place string
}

// readDocuments reads the objects of a YAML or JSON file, or of stdin if it is called "-".
func readDocuments(name string, stdin io.Reader) ([]document, error) {
	var data []byte
	var err error
	if name == "-" {
		name = "stdin"
		data, err = io.ReadAll(stdin)
	} else {
		data, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, fmt.Errorf("read objects: %w", err)
	}
	// A byte order mark says that the text is UTF-16. Without this, only the YAML decoder reads it, after the documents were split.
	data, _, err = transform.Bytes(unicode.BOMOverride(transform.Nop), data)
	if err != nil {
		return nil, fmt.Errorf("read objects: %s: %w", name, err)
	}
	var documents []document
	stream := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for n := 1; ; n++ {
		raw, err := stream.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		place := fmt.Sprintf("%s: document %d", name, n)
		content := map[string]any{}
		if err == nil {
			raw, err = yaml.YAMLToJSON(raw)
		}
		if err == nil {
			err = utiljson.Unmarshal(raw, &content)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", place, err)
		}
		if len(content) == 0 {
			continue
		}
		found, err := objectsIn(content, place)
		if err != nil {
			return nil, err
		}
		documents = append(documents, found...)
	}
	if len(documents) == 0 {
		return nil, fmt.Errorf("read objects: %s holds none", name)
	}
	return documents, nil
}

// objectsIn returns an object with its place, and of a list its items.
func objectsIn(content map[string]any, place string) ([]document, error) {
	u := &unstructured.Unstructured{Object: content}
	if u.GetKind() == "" || u.GetAPIVersion() == "" {
		return nil, fmt.Errorf("%s: it has no apiVersion or no kind", place)
	}
	if !u.IsList() || !strings.HasSuffix(u.GetKind(), "List") {
		if err := normalize.Check(content); err != nil {
			return nil, fmt.Errorf("%s: %s %s: %w", place, u.GetKind(), client.ObjectKeyFromObject(u), err)
		}
		return []document{{object: u, place: place}}, nil
	}
	var all []document
	for i, item := range normalize.Items(content) {
		fields, _ := item.(map[string]any)
		found, err := objectsIn(fields, fmt.Sprintf("%s, item %d", place, i+1))
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// kubernetesSource is a source of Kubernetes objects of one kind.
type kubernetesSource interface {
	GroupVersionKind() schema.GroupVersionKind
	Convert(received *unstructured.Unstructured) (client.Object, error)
	Selects(obj client.Object) bool
}

// applied returns objects as they would be once they were applied to the cluster.
func (r *reading) applied(ctx context.Context, documents []document, s selection) ([]subject, error) {
	var subjects []subject
	for _, d := range documents {
		if d.object.GetNamespace() == "" && len(s.namespaces) > 0 {
			d.object.SetNamespace(s.namespaces[0])
		}
		one, err := r.appliedOne(ctx, d.object)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.place, err)
		}
		subjects = append(subjects, one)
	}
	return subjects, nil
}

func (r *reading) appliedOne(ctx context.Context, obj *unstructured.Unstructured) (subject, error) {
	f, source, err := r.reconcilerOf(obj.GroupVersionKind())
	if err != nil {
		return subject{}, err
	}
	if err := r.completeNamespace(obj); err != nil {
		return subject{}, err
	}
	exists, err := r.dryRun(ctx, obj)
	if err != nil {
		return subject{}, fmt.Errorf("dry run of %s %s: %w", obj.GetKind(), client.ObjectKeyFromObject(obj), err)
	}
	converted, err := source.Convert(obj)
	if err != nil {
		return subject{}, err
	}
	if !source.Selects(converted) {
		return subject{}, fmt.Errorf("%s %s would not be seen by framework %q: its namespace or its labels are not those that are watched",
			obj.GetKind(), client.ObjectKeyFromObject(obj), f.Name())
	}
	return subject{framework: f, object: converted, isNew: !exists}, nil
}

// reconcilerOf returns the framework whose objects are of a kind.
func (r *reading) reconcilerOf(kind schema.GroupVersionKind) (*framework.Framework, kubernetesSource, error) {
	for _, f := range r.frameworks {
		source, ok := f.Sources()[0].(kubernetesSource)
		if ok && source.GroupVersionKind() == kind {
			return f, source, nil
		}
	}
	return nil, nil, fmt.Errorf("no framework of this operator reconciles a %s of %s: its frameworks are %s",
		kind.Kind, kind.GroupVersion(), list(r.frameworks))
}

// completeNamespace gives an object that has to have a namespace that of the connection, and takes it from one that
// must not.
func (r *reading) completeNamespace(obj *unstructured.Unstructured) error {
	namespaced, err := r.deps.Client.IsObjectNamespaced(obj)
	if err != nil {
		return fmt.Errorf("look up kind %s: %w%s", obj.GetKind(), err, remedy(err, r.deps.Name))
	}
	switch {
	case !namespaced:
		obj.SetNamespace("")
	case obj.GetNamespace() == "":
		obj.SetNamespace(r.connection.namespace)
	}
	return nil
}

// dryRun makes an object what it would be once it is applied: defaulted and validated by the API server, and with what
// is there of it already. It tells whether there is something.
func (r *reading) dryRun(ctx context.Context, obj *unstructured.Unstructured) (exists bool, err error) {
	c := client.WithFieldValidation(client.NewDryRunClient(r.deps.Client), metav1.FieldValidationStrict)
	wanted := obj.DeepCopy()
	err = c.Create(ctx, obj)
	if !apierrors.IsAlreadyExists(err) {
		return false, err
	}
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(obj.GroupVersionKind())
	if err := c.Get(ctx, client.ObjectKeyFromObject(wanted), stored); err != nil {
		return true, err
	}
	replace(wanted, stored)
	obj.Object = wanted.Object
	return true, c.Update(ctx, obj)
}

// replace prepares an object to take the place of the one that is stored, of which it keeps the identity, the finalizers
// and owners, the status, and the labels and annotations that it does not set.
func replace(wanted, stored *unstructured.Unstructured) {
	wanted.SetResourceVersion(stored.GetResourceVersion())
	wanted.SetUID(stored.GetUID())
	wanted.SetFinalizers(stored.GetFinalizers())
	wanted.SetOwnerReferences(stored.GetOwnerReferences())
	wanted.SetLabels(merged(stored.GetLabels(), wanted.GetLabels()))
	wanted.SetAnnotations(merged(stored.GetAnnotations(), wanted.GetAnnotations()))
	if status, ok := stored.Object["status"]; ok {
		wanted.Object["status"] = status
	}
}

// merged returns both maps as one, in which the values of the second win.
func merged(a, b map[string]string) map[string]string {
	if len(a) == 0 {
		return b
	}
	maps.Copy(a, b)
	return a
}
