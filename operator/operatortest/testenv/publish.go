package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/gofrs/flock"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// publish copies a kubeconfig file to a path that is the same for each testenv, unless several run at once: then each has the first that
// no other one has. The copy is there until forget is called.
func publish(kubeconfig string) (path string, forget func(), err error) {
	cache, err := operatortest.CacheDir()
	if err != nil {
		return "", nil, err
	}
	for n := 1; ; n++ {
		dir := filepath.Join(cache, "testenv", strconv.Itoa(n))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", nil, fmt.Errorf("make a folder for the kubeconfig: %w", err)
		}
		lock := flock.New(filepath.Join(dir, "lock"))
		free, err := lock.TryLock()
		if err != nil {
			return "", nil, fmt.Errorf("lock %s: %w", lock.Path(), err)
		}
		if !free {
			continue
		}
		path := filepath.Join(dir, "kubeconfig")
		_ = os.Remove(path) // of one that was killed
		if err := copyFile(kubeconfig, path, 0o600); err != nil {
			_ = lock.Close()
			return "", nil, fmt.Errorf("copy the kubeconfig to %s: %w", path, err)
		}
		return path, func() {
			_ = os.Remove(path)
			_ = lock.Close()
		}, nil
	}
}
