package operator

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// CRDMode defines how an operator treats its definitions when it starts.
type CRDMode string

const (
	// EnsureCRDs creates missing definitions and updates outdated ones in place. If they are all
	// right already, it needs no permission to write. See package crdclient.
	EnsureCRDs CRDMode = "ensure"
	// CheckCRDs writes nothing, and waits until another user has applied the definitions. Until
	// then the replica is not ready, and reports the reason.
	CheckCRDs CRDMode = "check"
	// IgnoreCRDs does not read them.
	IgnoreCRDs CRDMode = "off"
)

// CRDModes returns all modes.
func CRDModes() []CRDMode { return []CRDMode{EnsureCRDs, CheckCRDs, IgnoreCRDs} }

// ReadCRDs reads the definitions in all .yaml files of fsys, as controller-gen writes them, in the
// order of the files' names. Such files are best embedded into the program:
//
//	//go:embed crds/*.yaml
//	var crds embed.FS
//
// A file with any other content, or with an unknown field, is an error that names the file.
func ReadCRDs(fsys fs.FS) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var crds []*apiextensionsv1.CustomResourceDefinition
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".yaml" {
			return err
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		read, err := decodeCRDs(data)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		crds = append(crds, read...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read custom resource definitions: %w", err)
	}
	return crds, nil
}

// decodeCRDs decodes the documents of a YAML stream.
func decodeCRDs(data []byte) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var crds []*apiextensionsv1.CustomResourceDefinition
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return crds, nil
		}
		if err != nil {
			return nil, err
		}
		var content map[string]any
		if err := yaml.Unmarshal(document, &content); err != nil {
			return nil, err
		}
		if len(content) == 0 {
			continue
		}
		if content["apiVersion"] != apiextensionsv1.SchemeGroupVersion.String() || content["kind"] != "CustomResourceDefinition" {
			return nil, fmt.Errorf("it holds a %v of %v: only a CustomResourceDefinition of %s can be read",
				content["kind"], content["apiVersion"], apiextensionsv1.SchemeGroupVersion)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(document, crd); err != nil {
			return nil, err
		}
		crds = append(crds, crd)
	}
}
