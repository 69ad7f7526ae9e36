package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// instance is what the launcher registers of each running control plane, as a
// JSON file in the folder "instances" of the cache.
type instance struct {
	PID        int       `json:"pid"`
	Kubeconfig string    `json:"kubeconfig"`
	Test       bool      `json:"test"`
	Started    time.Time `json:"started"`
}

// newestInstance returns the kubeconfig of the instance that was started last
// by a program or, when there is none, by a test.
func newestInstance() (string, error) {
	dir, err := instancesDir()
	if err != nil {
		return "", err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return "", fmt.Errorf("list %s: %w", dir, err)
	}
	var best *instance
	for _, file := range files {
		candidate, err := readInstance(file)
		if err != nil || !candidate.alive() {
			continue // being written, or left behind by a process that was killed
		}
		if best == nil || candidate.before(best) {
			best = candidate
		}
	}
	if best == nil {
		return "", errNoInstance
	}
	return best.Kubeconfig, nil
}

// before is whether i is the better choice.
func (i *instance) before(other *instance) bool {
	if i.Test != other.Test {
		return !i.Test
	}
	return i.Started.After(other.Started)
}

// alive is whether the process that started i still runs.
func (i *instance) alive() bool {
	process, err := os.FindProcess(i.PID)
	if err != nil || process.Signal(syscall.Signal(0)) != nil {
		return false
	}
	_, err = os.Stat(i.Kubeconfig)
	return err == nil
}

func readInstance(file string) (*instance, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var i instance
	if err := json.Unmarshal(text, &i); err != nil {
		return nil, fmt.Errorf("parse %s: %w", file, err)
	}
	return &i, nil
}

// instancesDir must agree with the launcher's.
func instancesDir() (string, error) {
	if dir := os.Getenv("OPERATORTEST_CACHE"); dir != "" {
		return filepath.Join(dir, "instances"), nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w; set OPERATORTEST_CACHE, or name a cluster with --kubeconfig", err)
	}
	return filepath.Join(dir, "operatorkit", "instances"), nil
}
