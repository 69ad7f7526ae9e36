package helm

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/internal/normalize"
	"github.com/operatorkit/operatorkit/resource/internal/yamlsize"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// By these Helm knows the objects of a release.
const (
	managedByLabel             = "app.kubernetes.io/managed-by"
	managedByHelm              = "Helm"
	releaseNameAnnotation      = "meta.helm.sh/release-name"
	releaseNamespaceAnnotation = "meta.helm.sh/release-namespace"
)

// With this annotation Helm keeps an object that is not part of its release any more.
const (
	policyAnnotation = "helm.sh/resource-policy"
	keepPolicy       = "keep"
)

// parseManifest reads the objects of a YAML stream, in their order. Lists count as their items.
func parseManifest(manifest io.Reader) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	documents := utilyaml.NewYAMLReader(bufio.NewReader(manifest))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the manifest: %w", err)
		}
		parsed, err := parseDocument(document)
		if err != nil {
			return nil, err
		}
		objects = append(objects, parsed...)
	}
}

// largestManifest is how large all documents with aliases may be together, which are in memory at once, in bytes.
const largestManifest = 64 << 20

var errTooLarge = fmt.Errorf("its documents have more than %d bytes, with aliases as what they stand for", largestManifest)

// weigh returns an error for files that come to too much, before Helm reads them.
func weigh(files map[string]string) error {
	left := largestManifest
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for _, document := range releaseutil.SplitManifests(files[name]) {
			n, err := yamlsize.Of([]byte(document), left)
			if err != nil {
				return fmt.Errorf("what the chart renders, up to %s: %w", name, errTooLarge)
			}
			left -= n
		}
	}
	return nil
}

// largestDocument is how large an object may be with the aliases of its YAML as what they stand for, in bytes: larger than any API server takes.
const largestDocument = 16 << 20

func parseDocument(document []byte) ([]*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if _, err := yamlsize.Of(document, largestDocument); err != nil {
		return nil, fmt.Errorf("what the chart renders is too large: %w", err)
	}
	content, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, fmt.Errorf("what the chart renders is no YAML: %w", err)
	}
	if bytes.Equal(bytes.TrimSpace(content), []byte("null")) {
		return nil, nil
	}
	if err := u.UnmarshalJSON(content); runtime.IsMissingKind(err) {
		return nil, errors.New("what the chart renders is no Kubernetes object: it has no kind") // The error quotes all of it.
	} else if err != nil {
		return nil, fmt.Errorf("what the chart renders is no Kubernetes object: %w", err)
	}
	return flatten(u)
}

// flatten returns the items of a list, and of lists in it, with the kind and the API version of the list where they have none, and another object
// as it is.
func flatten(u *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if !u.IsList() {
		return []*unstructured.Unstructured{u}, nil
	}
	var objects []*unstructured.Unstructured
	for i, item := range normalize.Items(u.Object) {
		fields, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("item %d of a %s is no Kubernetes object", i, u.GetKind())
		}
		inner, err := flatten(&unstructured.Unstructured{Object: fields})
		if err != nil {
			return nil, err
		}
		objects = append(objects, inner...)
	}
	return objects, nil
}

// checked reads the objects of a YAML stream that a chart brings, and refuses those that can't be kept as they are written.
func checked(manifest string) ([]*unstructured.Unstructured, error) {
	objects, err := parseManifest(strings.NewReader(manifest))
	if err != nil {
		return nil, err
	}
	for _, u := range objects {
		if err := normalize.Check(u.Object); err != nil {
			return nil, framework.Permanent(fmt.Errorf("the chart renders %s: %w", describe(u), err))
		}
		normalize.Object(u.Object)
	}
	return objects, nil
}

// place puts an object into the namespace of the release, if it belongs into one and says none.
func place(u *unstructured.Unstructured, mapping *meta.RESTMapping, namespace string) {
	switch {
	case mapping.Scope.Name() != meta.RESTScopeNameNamespace:
		u.SetNamespace("")
	case u.GetNamespace() == "":
		u.SetNamespace(namespace)
	}
}

// placed parses what a release has in its manifest, as it is applied but for the marks of its service. Kinds that the cluster
// does not have, and objects without a name, are left out where tolerant.
func (j *job) placed(manifest string, known carrier.Definitions, tolerant bool) ([]*unstructured.Unstructured, error) {
	parsed, err := parseManifest(bytes.NewBufferString(manifest))
	if err != nil {
		return nil, err
	}
	known = append(slices.Clone(known), carrier.DefinitionsIn(parsed)...)
	var objects []*unstructured.Unstructured
	for _, u := range parsed {
		if tolerant && isNameless(u) {
			continue
		}
		mapping, err := known.Mapping(j.mapper, u.GroupVersionKind())
		if meta.IsNoMatchError(err) && tolerant {
			continue
		}
		if err != nil {
			return nil, &unknownKindError{object: describe(u), kind: u.GroupVersionKind(), err: err}
		}
		normalize.Object(u.Object)
		place(u, mapping, j.service.Key.Namespace)
		objects = append(objects, u)
	}
	return lastOnes(objects), nil
}

// isNameless reports whether an object gets its name from the API server, so that it can't be found by what a release has of it.
func isNameless(u *unstructured.Unstructured) bool { return u.GetName() == "" }

// lastOnes leaves the last one of objects that are there more than once: it is what is left when all are applied in their order.
func lastOnes(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	last := map[carrier.Identity]*unstructured.Unstructured{}
	for _, u := range objects {
		last[carrier.IdentityOf(u)] = u
	}
	return slices.DeleteFunc(objects, func(u *unstructured.Unstructured) bool { return last[carrier.IdentityOf(u)] != u })
}

// dressed returns an object as it is applied: with what Helm knows it by, and the marks of its service.
func (j *job) dressed(u *unstructured.Unstructured) *unstructured.Unstructured {
	dressed := u.DeepCopy()
	carrier.Dress(dressed, j.service)
	normalize.Mark(dressed, map[string]string{managedByLabel: managedByHelm}, j.releaseAnnotations())
	return dressed
}

// releaseAnnotations are those by which Helm knows an object of the release.
func (j *job) releaseAnnotations() map[string]string {
	return map[string]string{releaseNameAnnotation: j.service.Key.Name, releaseNamespaceAnnotation: j.service.Key.Namespace}
}

// kindsOf returns the kinds of objects for an annotation.
func kindsOf(objects []*unstructured.Unstructured) string {
	kinds := make([]schema.GroupVersionKind, len(objects))
	for i, u := range objects {
		kinds[i] = u.GroupVersionKind()
	}
	return strings.Join(carrier.FormatKinds(kinds), ",")
}

// isAmong reports whether an object is one of several, whatever is in it.
func isAmong(objects []*unstructured.Unstructured, u *unstructured.Unstructured) bool {
	return slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool { return carrier.IdentityOf(o) == carrier.IdentityOf(u) })
}

// without returns the objects that are not among others.
func without(objects, others []*unstructured.Unstructured) []*unstructured.Unstructured {
	seen := map[carrier.Identity]bool{}
	for _, u := range others {
		seen[carrier.IdentityOf(u)] = true
	}
	var rest []*unstructured.Unstructured
	for _, u := range objects {
		if id := carrier.IdentityOf(u); !seen[id] {
			seen[id] = true
			rest = append(rest, u)
		}
	}
	return rest
}

// describe names an object for people.
func describe(object client.Object) string {
	apiVersion, kind := object.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	return plan.Object{APIVersion: apiVersion, Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName()}.String()
}

// emptyOf returns an object of the same kind and name, to be read into.
func emptyOf(u *unstructured.Unstructured) *unstructured.Unstructured {
	empty := &unstructured.Unstructured{}
	empty.SetGroupVersionKind(u.GroupVersionKind())
	empty.SetNamespace(u.GetNamespace())
	empty.SetName(u.GetName())
	return empty
}
