package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/operatorkit/operatorkit/internal/normalize"
)

// readFolder reads the manifests of a folder in the order of their names.
func readFolder(files fs.FS, folder string, budget *budget) ([]document, error) {
	folder = cmp.Or(path.Clean(folder), ".")
	entries, err := fs.ReadDir(files, folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("its source has no folder %q: mend the path of the template", folder)
	}
	if err != nil {
		return nil, fmt.Errorf("read the folder %q: %w", folder, err)
	}
	var documents []document
	for _, entry := range entries {
		if entry.IsDir() || !isManifest(entry.Name()) {
			continue
		}
		name := path.Join(folder, entry.Name())
		data, err := readFile(files, name, budget)
		if err != nil {
			return nil, err
		}
		found, err := documentsOf(name, data, budget)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		documents = append(documents, found...)
	}
	if len(documents) == 0 {
		return nil, fmt.Errorf("there is no manifest in the folder %q of its source: files end in .yaml, .yml or .json, and folders below "+
			"it are not looked into", folder)
	}
	return documents, nil
}

func isManifest(name string) bool {
	switch path.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// readFile reads a file if the budget allows for it, before its content is in memory.
func readFile(files fs.FS, name string, budget *budget) ([]byte, error) {
	info, err := fs.Stat(files, name)
	if err != nil {
		return nil, err
	}
	if err := budget.takeBytes(int(info.Size())); err != nil {
		return nil, err
	}
	return fs.ReadFile(files, name)
}

// documentsOf returns the objects in a file. Those of lists are taken out of them.
func documentsOf(name string, data []byte, budget *budget) ([]document, error) {
	values, err := parse(data, budget)
	if err != nil {
		return nil, err
	}
	var documents []document
	for _, value := range values {
		apiVersion, kind := textOf(value, "apiVersion"), textOf(value, "kind")
		if kind == "Kustomization" && strings.HasPrefix(apiVersion, "kustomize.config.k8s.io/") {
			return nil, errors.New("it is a kustomization: a template names its folder in spec.kustomize instead of spec.resources")
		}
		for _, element := range flatten(value) {
			if err := budget.takeObject(); err != nil {
				return nil, err
			}
			documents = append(documents, document{file: name, value: element})
		}
	}
	return documents, nil
}

// flatten returns the items of a list, and of lists in it, and another value as it is.
func flatten(value any) []any {
	list, _ := value.(map[string]any)
	if _, ok := list["items"].([]any); !ok || !strings.HasSuffix(textOf(value, "kind"), "List") {
		return []any{value}
	}
	var all []any
	for _, item := range normalize.Items(list) {
		all = append(all, flatten(item)...)
	}
	return all
}
