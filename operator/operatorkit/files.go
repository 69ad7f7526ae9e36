package main

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"
)

//go:embed templates
var templates embed.FS

// files are the contents of files by their paths in a project. They are made in memory first, and written when all of them could be made.
type files map[string][]byte

// add makes a file of a template.
func (f files) add(path, name string, n *names) error {
	content, err := render(name, n)
	if err == nil {
		f[path] = content
	}
	return err
}

// render executes a template. Go code is formatted, and definitions are written as controller-gen does it.
func render(name string, n *names) ([]byte, error) {
	file := "templates/" + name + ".tmpl"
	parsed, err := template.New(path.Base(file)).Funcs(template.FuncMap{"yaml": scalar}).ParseFS(templates, file)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := parsed.Execute(&b, n); err != nil {
		return nil, err
	}
	switch {
	case strings.HasSuffix(name, "crd.yaml"):
		var crd any
		if err := yaml.Unmarshal(b.Bytes(), &crd); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		content, err := yaml.Marshal(crd)
		return append([]byte("---\n"), content...), err
	case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "deepcopy.go"):
		content, err := format.Source(b.Bytes())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return content, nil
	}
	return b.Bytes(), nil
}

// scalar writes a text as YAML: "True" is a boolean without quotes.
func scalar(text string) (string, error) {
	content, err := yaml.Marshal(text)
	return strings.TrimSpace(string(content)), err
}

// addKind makes the files of a kind, except what it adds to those that all kinds share.
func (f files) addKind(n *names) error {
	return errors.Join(
		f.add("api/v1alpha1/"+n.Package+".go", "kind/types.go", n),
		f.add("api/v1alpha1/crd/"+n.Group+"_"+n.Plural+".yaml", "kind/crd.yaml", n),
		f.add(n.Package+"/"+n.Package+".go", "kind/framework.go", n),
		f.add(n.Package+"/v1.go", "kind/v1.go", n),
		f.add(n.Package+"/objects.go", "kind/objects.go", n),
		f.add(n.Package+"/listing.go", "kind/listing.go", n),
		f.add(n.Package+"/status.go", "kind/status.go", n),
		f.add(n.Package+"_test.go", "kind/test.go", n),
		f.add("samples/"+n.Package+".yaml", "kind/sample.yaml", n),
	)
}

// refuseExisting is an error if one of the files exists.
func (f files) refuseExisting(dir string) error {
	var exist []string
	for path := range f {
		if _, err := os.Lstat(filepath.Join(dir, path)); !errors.Is(err, fs.ErrNotExist) {
			exist = append(exist, path)
		}
	}
	if len(exist) == 0 {
		return nil
	}
	slices.Sort(exist)
	return fmt.Errorf("nothing was written, because there are files already that would be: %s: choose another name, or move them away", strings.Join(exist, ", "))
}

// write writes the files, and returns their paths.
func (f files) write(dir string) ([]string, error) {
	var paths []string
	for path := range f {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range paths {
		full := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil { //nolint:gosec // a project is for all to read
			return nil, fmt.Errorf("write the project: %w", err)
		}
		if err := os.WriteFile(full, f[path], 0o644); err != nil { //nolint:gosec // a project is for all to read
			return nil, fmt.Errorf("write the project: %w", err)
		}
	}
	return paths, nil
}
