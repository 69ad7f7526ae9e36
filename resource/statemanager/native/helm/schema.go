package helm

import (
	"bytes"
	"fmt"
	"io/fs"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/operatorkit/operatorkit/framework"
)

// schemaFile is what Helm calls the schema of a chart when it compiles it.
const schemaFile = "file:///values.schema.json"

// checkSchema refuses schemas that refer to files or addresses, which Helm would open with the rights of the operator.
func checkSchema(c *chart.Chart) error {
	if c.Schema != nil {
		schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(c.Schema))
		if err != nil {
			return framework.Permanent(fmt.Errorf("values.schema.json of the chart %s: %w", c.Name(), err))
		}
		if reference := outsideReference(schema); reference != "" {
			return framework.Permanent(fmt.Errorf("values.schema.json of the chart %s refers to %q: it may refer to itself only; "+
				"set skipSchemaValidation to do without it: %w", c.Name(), reference, fs.ErrPermission))
		}
	}
	for _, sub := range c.Dependencies() {
		if err := checkSchema(sub); err != nil {
			return err
		}
	}
	return nil
}

// outsideReference returns the first file or address that compiling a schema would open, or nothing. It compiles the schema as Helm does, so
// that an address which only names a part of the schema, or is in a default or an example, counts for none. What else is wrong is for Helm to say.
func outsideReference(schema any) (reference string) {
	opened := &noLoader{}
	defer func() {
		_ = recover() // The compiler may panic, and does so again when Helm calls it, which recovers.
		reference = opened.first
	}()
	// A schema that the newest draft refuses may be one of an older draft that does not say so.
	for _, draft := range []*jsonschema.Draft{jsonschema.Draft2020, jsonschema.Draft7} {
		compiler := jsonschema.NewCompiler()
		compiler.DefaultDraft(draft)
		compiler.UseLoader(opened)
		if compiler.AddResource(schemaFile, schema) != nil {
			continue
		}
		if _, err := compiler.Compile(schemaFile); err == nil {
			break
		}
	}
	return ""
}

// noLoader opens nothing.
type noLoader struct{ first string }

// Load implements jsonschema.URLLoader. What has a name instead of an address matches everything, as with Helm.
func (l *noLoader) Load(url string) (any, error) {
	if strings.HasPrefix(url, "urn:") {
		return true, nil
	}
	if l.first == "" {
		l.first = url
	}
	return nil, fs.ErrPermission
}
