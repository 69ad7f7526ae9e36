package manifest

import "io/fs"

// Document is a manifest as it is in a file.
type Document struct {
	// File is the name of the file.
	File string
	// Value is the JSON value of it, with whole numbers as int64.
	Value any
}

// Documents reads the manifests of a folder in the order of the files' names, with the elements of lists on their own, for those who
// make something else of them than a Carrier does. References to values stay as they are. There is one at least, or an error,
// which is permanent by nature.
func Documents(files fs.FS, folder string, limits Limits) ([]Document, error) {
	config, err := Config{Limits: limits}.withDefaults()
	if err != nil {
		return nil, err
	}
	found, err := readFolder(files, folder, &budget{limits: config.Limits})
	if err != nil {
		return nil, err
	}
	documents := make([]Document, len(found))
	for i, d := range found {
		documents[i] = Document{File: d.file, Value: d.value}
	}
	return documents, nil
}
