package fetch

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/resource/statemanager/native/artifact"
)

// FilesOfConfigMap returns the entries of a ConfigMap as files. An error is an *Error, and is permanent.
func FilesOfConfigMap(configMap *corev1.ConfigMap) (*artifact.Files, error) {
	entries := maps.Clone(configMap.BinaryData)
	if entries == nil {
		entries = map[string][]byte{}
	}
	for name, text := range configMap.Data {
		entries[name] = []byte(text)
	}
	return filesOf("ConfigMap "+configMap.Namespace+"/"+configMap.Name, entries)
}

// FilesOfSecret returns the entries of a Secret as files. An error is an *Error, and is permanent. The digest stands for
// the data, and is no more secret than a hash of it.
func FilesOfSecret(secret *corev1.Secret) (*artifact.Files, error) {
	return filesOf("Secret "+secret.Namespace+"/"+secret.Name, secret.Data)
}

func filesOf(what string, entries map[string][]byte) (*artifact.Files, error) {
	if len(entries) == 0 {
		err := permanent(ErrInvalid, "give it an entry for each file", "it has no entries")
		err.What = what
		return nil, err
	}
	files := make([]file, 0, len(entries))
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if !fs.ValidPath(name) || name == "." || strings.Contains(name, "/") {
			err := permanent(ErrInvalid, "rename the entry", "the entry %q is no name of a file", name)
			err.What = what
			return nil, err
		}
		data := bytes.Clone(entries[name])
		files = append(files, file{name: name, data: data})
		for _, part := range [][]byte{[]byte(name), data} {
			_ = binary.Write(sum, binary.BigEndian, uint64(len(part)))
			sum.Write(part)
		}
	}
	return &artifact.Files{FS: newMemory(files), Digest: "sha256:" + hex.EncodeToString(sum.Sum(nil))}, nil
}

// memory is a file system that nobody can write to.
type memory struct{ files fstest.MapFS }

func newMemory(files []file) memory {
	m := memory{files: fstest.MapFS{}}
	for _, f := range files {
		m.files[f.name] = &fstest.MapFile{Data: f.data, Mode: 0o444, ModTime: f.time}
	}
	return m
}

// Open implements fs.FS.
func (m memory) Open(name string) (fs.File, error) { return m.files.Open(name) }

// ReadFile implements fs.ReadFileFS, and returns a copy.
func (m memory) ReadFile(name string) ([]byte, error) { return m.files.ReadFile(name) }

// ReadDir implements fs.ReadDirFS.
func (m memory) ReadDir(name string) ([]fs.DirEntry, error) { return m.files.ReadDir(name) }

// Stat implements fs.StatFS.
func (m memory) Stat(name string) (fs.FileInfo, error) { return m.files.Stat(name) }
