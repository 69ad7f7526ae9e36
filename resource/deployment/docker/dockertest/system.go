package dockertest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// programAt returns a program of the system, at another path, with the libraries that it needs.
func programAt(at, path string) ([]file, error) {
	files, err := withLibraries(path)
	for i := range files {
		if files[i].path == path {
			files[i].path = at
		}
	}
	return files, err
}

// withLibraries returns programs and libraries of the system, with the libraries that they need.
func withLibraries(paths ...string) ([]file, error) {
	var files []file
	for _, path := range paths {
		content, err := os.ReadFile(path) //nolint:gosec // a program of the system
		if err != nil {
			return nil, err
		}
		libraries, err := librariesOf(path)
		if err != nil {
			return nil, err
		}
		files = append(append(files, libraries...), file{path: path, mode: 0o755, content: content})
	}
	// What several need is there once.
	slices.SortStableFunc(files, func(a, b file) int { return strings.Compare(a.path, b.path) })
	return slices.CompactFunc(files, func(a, b file) bool { return a.path == b.path }), nil
}

// librariesOf returns what a program needs to run: nothing for one that is linked statically.
func librariesOf(program string) ([]file, error) {
	out, err := exec.Command("ldd", program).CombinedOutput() //nolint:gosec // a program of the system
	if strings.Contains(string(out), "not a dynamic executable") {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look which libraries %s needs: %w: %s", program, err, out)
	}
	var files []file
	for line := range strings.Lines(string(out)) {
		// "libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x…)", and the loader as "/lib64/ld-linux-x86-64.so.2 (0x…)".
		for _, field := range strings.Fields(line) {
			if !strings.HasPrefix(field, "/") {
				continue
			}
			content, err := os.ReadFile(field) //nolint:gosec // a library of the system
			if err != nil {
				return nil, err
			}
			files = append(files, file{path: field, mode: 0o755, content: content})
		}
	}
	return files, nil
}

// filesIn returns all files of a folder.
func filesIn(folder string) ([]file, error) {
	var files []file
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path) //nolint:gosec // a file of the system
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a link to what is not installed
		}
		files = append(files, file{path: path, mode: 0o644, content: content})
		return err
	})
	return files, err
}
