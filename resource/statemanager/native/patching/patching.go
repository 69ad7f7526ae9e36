package patching

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/filters/patchstrategicmerge"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/internal/panics"
	"github.com/operatorkit/operatorkit/resource/internal/yamlsize"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

const (
	// largest is how large a patch may be as JSON, where aliases of YAML are what they stand for, in bytes.
	largest = 256 << 10
	// most is what all patches may put into all objects of a service together, in bytes.
	most = 64 << 20
)

// Patches are those of one service, for one rendering. It is not safe for concurrent use.
type Patches struct {
	all   []*patch
	spent int
}

// patch is one entry: either operations, or merges.
type patch struct {
	index      int
	target     *selector
	operations jsonpatch.Patch
	merges     []*merge
	size       int
	matched    bool
}

// merge is one strategic merge patch. Without a target, it is for the object that it names.
type merge struct {
	value   map[string]any
	size    int
	matched bool
}

// Of reads patches. The error is permanent, and names the patch.
func Of(patches []v1alpha1.Patch) (*Patches, error) {
	read := &Patches{}
	for i, given := range patches {
		p := &patch{index: i}
		if err := p.read(given); err != nil {
			return nil, p.wrong(err)
		}
		read.all = append(read.all, p)
	}
	return read, nil
}

// wrong is an error of a patch.
func (p *patch) wrong(err error) error {
	return framework.Permanent(fmt.Errorf("patches[%d]: %w", p.index, err))
}

func (p *patch) read(given v1alpha1.Patch) (err error) {
	if given.Target != nil {
		if p.target, err = selectorOf(given.Target); err != nil {
			return err
		}
	}
	documents, err := documentsOf(given.Patch)
	switch {
	case err != nil:
		return err
	case len(documents) == 0:
		return errors.New("it is empty")
	case len(documents) > 1 && p.target != nil:
		return fmt.Errorf("it has %d documents and a target: make each of them a patch of its own", len(documents))
	}
	for _, document := range documents {
		if p.size += len(document); p.size > largest {
			return fmt.Errorf("it has more than %d bytes, with aliases as what they stand for: make it smaller", largest)
		}
		switch document[0] {
		case '[':
			err = p.readOperations(document, len(documents))
		case '{':
			err = p.readMerge(document)
		default:
			err = errors.New("it is neither a list of operations nor an object")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// documentsOf returns the documents of a YAML stream as JSON.
func documentsOf(text string) (documents [][]byte, err error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if _, tooLarge := yamlsize.Of(document, largest); tooLarge != nil {
			return nil, tooLarge
		}
		if err == nil {
			document, err = yaml.YAMLToJSONStrict(document)
		}
		if err != nil {
			return nil, fmt.Errorf("it is no YAML: %w", err)
		}
		if string(document) != "null" {
			documents = append(documents, document)
		}
	}
}

func (p *patch) readOperations(document []byte, documents int) (err error) {
	switch {
	case documents > 1:
		return errors.New("it has more than one document, and one of them is a list of operations: make each of them a patch of its own")
	case p.target == nil:
		return errors.New("a list of operations does not say what it changes: set target")
	}
	if p.operations, err = jsonpatch.DecodePatch(document); err != nil {
		return fmt.Errorf("it is no list of operations: %w", err)
	}
	for i, operation := range p.operations {
		if _, err := operation.Path(); err != nil {
			return fmt.Errorf("operation %d has no path", i)
		}
		switch kind := operation.Kind(); kind {
		case "add", "remove", "replace", "move", "test":
		case "copy":
			return fmt.Errorf("operation %d is copy, with which an object could grow without a bound: add what it copies instead", i)
		default:
			return fmt.Errorf("operation %d is %q: it is add, remove, replace, move or test", i, kind)
		}
	}
	return nil
}

func (p *patch) readMerge(document []byte) error {
	m := &merge{size: len(document)}
	if err := utiljson.Unmarshal(document, &m.value); err != nil {
		return err
	}
	u := unstructured.Unstructured{Object: m.value}
	if p.target == nil && (u.GetAPIVersion() == "" || u.GetKind() == "" || u.GetName() == "") {
		return errors.New("it does not say which object it changes: give it apiVersion, kind and metadata.name, or set target")
	}
	p.merges = append(p.merges, m)
	return nil
}

// Apply returns what an object becomes by the patches, and whether there is one for it: itself where there is none, and nil where it is
// deleted. The object stays as it is. One that has no namespace goes to the given one, if it has to be in any.
func (p *Patches) Apply(ctx context.Context, object map[string]any, namespace string) (patched map[string]any, matched bool, err error) {
	for _, each := range p.all {
		if object == nil {
			break
		}
		u := &unstructured.Unstructured{Object: object}
		if each.merges == nil {
			if !each.target.selects(u) {
				continue
			}
			each.matched, matched = true, true
			if err := p.spend(each, each.size); err != nil {
				return nil, true, err
			}
			if object, err = each.operate(u); err != nil {
				return nil, true, each.wrong(fmt.Errorf("%s: %w", describe(u), err))
			}
			continue
		}
		for _, m := range each.merges {
			if object == nil || !each.isFor(m, u, namespace) {
				continue
			}
			m.matched, matched = true, true
			if err := p.spend(each, m.size); err != nil {
				return nil, true, err
			}
			if object, err = m.into(ctx, u); err != nil {
				if ctx.Err() != nil {
					return nil, true, err
				}
				return nil, true, each.wrong(fmt.Errorf("%s: %w", describe(u), err))
			}
			u = &unstructured.Unstructured{Object: object}
		}
	}
	return object, matched, nil
}

// spend counts what patches put into objects.
func (p *Patches) spend(of *patch, size int) error {
	if p.spent += size; p.spent > most {
		return of.wrong(fmt.Errorf("with it, patches put more than %d bytes into objects: have them select fewer, or split the service", most))
	}
	return nil
}

// Missed returns an error that names the patches for which there was no object.
func (p *Patches) Missed() error {
	var errs []error
	for _, each := range p.all {
		switch {
		case each.target != nil:
			if !each.matched && !slices.ContainsFunc(each.merges, func(m *merge) bool { return m.matched }) {
				errs = append(errs, each.wrong(fmt.Errorf("no object has %s: mend the target, or take the patch out", each.target)))
			}
		default:
			for _, m := range each.merges {
				if !m.matched {
					u := &unstructured.Unstructured{Object: m.value}
					errs = append(errs, each.wrong(fmt.Errorf("there is no %s: mend its name, or take the patch out", describe(u))))
				}
			}
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return framework.Permanent(errors.Join(errs...))
}

// isFor tells whether a merge is for an object.
func (p *patch) isFor(m *merge, u *unstructured.Unstructured, namespace string) bool {
	if p.target != nil {
		return p.target.selects(u)
	}
	named := unstructured.Unstructured{Object: m.value}
	in := func(u *unstructured.Unstructured) string {
		if u.GetNamespace() == "" {
			return namespace
		}
		return u.GetNamespace()
	}
	return named.GetAPIVersion() == u.GetAPIVersion() && named.GetKind() == u.GetKind() && named.GetName() == u.GetName() && in(&named) == in(u)
}

// operate carries out operations on an object.
func (p *patch) operate(u *unstructured.Unstructured) (map[string]any, error) {
	before, err := json.Marshal(u.Object)
	if err != nil {
		return nil, err
	}
	after, err := p.operations.Apply(before)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if err := utiljson.Unmarshal(after, &object); err != nil {
		return nil, errors.New("what it makes is no object")
	}
	if made := (&unstructured.Unstructured{Object: object}); made.GetAPIVersion() == "" || made.GetKind() == "" || made.GetName() == "" {
		return nil, errors.New("what it makes has no apiVersion, kind or metadata.name: leave them, or replace their values")
	}
	return object, nil
}

// into merges a patch into an object, which stays the object that it is. Nil is one that it deletes.
func (m *merge) into(ctx context.Context, u *unstructured.Unstructured) (object map[string]any, err error) {
	named := (&unstructured.Unstructured{Object: m.value}).DeepCopy()
	named.SetAPIVersion(u.GetAPIVersion())
	named.SetKind(u.GetKind())
	named.SetName(u.GetName())
	named.SetNamespace(u.GetNamespace())
	patch, err := nodeOf(named.Object)
	if err != nil {
		return nil, err
	}
	before, err := nodeOf(u.Object)
	if err != nil {
		return nil, err
	}
	release, err := Exclusive(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	defer func() {
		if v := recover(); v != nil {
			object, err = nil, fmt.Errorf("it makes kustomize fail: %s", panics.Describe(v))
		}
	}()
	merged, err := patchstrategicmerge.Filter{Patch: patch}.Filter([]*kyaml.RNode{before})
	if err != nil || len(merged) == 0 || merged[0].IsNilOrEmpty() {
		return nil, err
	}
	after, err := merged[0].MarshalJSON()
	if err != nil {
		return nil, err
	}
	if err := utiljson.Unmarshal(after, &object); err != nil {
		return nil, err
	}
	if made := (&unstructured.Unstructured{Object: object}); describe(made) != describe(u) {
		return nil, fmt.Errorf("it makes %s of it: leave metadata an object, and its name and namespace", describe(made))
	}
	return object, nil
}

// nodeOf makes what kustomize works with of an object.
func nodeOf(object map[string]any) (*kyaml.RNode, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	return kyaml.Parse(string(text))
}

// describe names an object for people.
func describe(u *unstructured.Unstructured) string {
	if u.GetNamespace() == "" {
		return fmt.Sprintf("%s %s of %s", u.GetKind(), u.GetName(), u.GetAPIVersion())
	}
	return fmt.Sprintf("%s %s/%s of %s", u.GetKind(), u.GetNamespace(), u.GetName(), u.GetAPIVersion())
}
