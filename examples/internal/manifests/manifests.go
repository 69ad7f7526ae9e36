// Package manifests reads the objects of the files that are embedded in examples.
package manifests

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Decode returns the objects of a YAML file, which have to be of types that the scheme knows. A field that these lack is an error.
func Decode(scheme *runtime.Scheme, file string, data []byte) ([]client.Object, error) {
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	var objects []client.Object
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("read document %d of %s: %w", len(objects)+1, file, err)
		}
		objects = append(objects, object.(client.Object))
	}
}
