package operatortest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// starter is who started an instance: kubectl prefers those of programs.
type starter int

const (
	startedByProgram starter = iota
	startedByTest
)

// record is what "controlplane kubectl" reads of a running instance. Its
// source has the same type.
type record struct {
	PID        int       `json:"pid"`
	Kubeconfig string    `json:"kubeconfig"`
	Test       bool      `json:"test"`
	Started    time.Time `json:"started"`
}

// register makes an instance known to kubectl and returns the file to remove
// when it stops. Files of processes that were killed are removed on the way.
func register(cacheDir, kubeconfig string, by starter) (string, error) {
	dir := filepath.Join(cacheDir, "instances")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the folder of running instances: %w", err)
	}
	forgetDead(dir)
	text, err := json.Marshal(record{PID: os.Getpid(), Kubeconfig: kubeconfig, Test: by == startedByTest, Started: time.Now()})
	if err != nil {
		return "", fmt.Errorf("encode the record of a running instance: %w", err)
	}
	file, err := os.CreateTemp(dir, fmt.Sprintf("%d-*.json", os.Getpid()))
	if err != nil {
		return "", fmt.Errorf("register the running instance: %w", err)
	}
	_, err = file.Write(text)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return "", fmt.Errorf("register the running instance in %s: %w", file.Name(), err)
	}
	return file.Name(), nil
}

// forgetDead removes the records of processes that are gone. What can't be
// read is left alone: it may be in the making.
func forgetDead(dir string) {
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		var r record
		if json.Unmarshal(text, &r) != nil {
			continue
		}
		process, err := os.FindProcess(r.PID)
		if err != nil || process.Signal(syscall.Signal(0)) != nil {
			_ = os.Remove(file)
		}
	}
}
