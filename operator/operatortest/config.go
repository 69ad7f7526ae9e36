package operatortest

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Environment variables that configure tests from outside.
const (
	// KubeconfigVariable names the kubeconfig file of a running cluster, which
	// Start then uses instead of starting a control plane. The program testenv
	// sets it; it can be set by hand to test against any cluster.
	KubeconfigVariable = "OPERATORTEST_KUBECONFIG"
	// BinaryVariable names the control plane's binary, see Config.BinaryPath.
	BinaryVariable = "OPERATORTEST_CONTROLPLANE"
	// CacheVariable names the cache folder, see Config.CacheDir.
	CacheVariable = "OPERATORTEST_CACHE"
)

// Config says how to run a control plane. The zero value is good for tests and
// first steps.
type Config struct {
	// BinaryPath is the control plane's binary. Default: the environment
	// variable OPERATORTEST_CONTROLPLANE; without it, the build kept in
	// CacheDir; without one, it is built (see Binary).
	BinaryPath string

	// CacheDir keeps the binary, and the list of running instances that
	// "controlplane kubectl" looks at. Default: the environment variable
	// OPERATORTEST_CACHE; without it, "operatorkit" in the user's cache folder
	// (os.UserCacheDir).
	CacheDir string

	// DataDir keeps the store, the certificates, the kubeconfig and the logs. A
	// folder that an earlier instance left behind is used again: the objects
	// are there, and the CAs stay the same. One whose API server was never
	// ready is begun anew. Default: a temporary folder, which Stop removes.
	DataDir string

	// Progress receives a line every few seconds while something takes long,
	// such as building the binary. It is written to by one goroutine at a time.
	// Default: os.Stderr. Use io.Discard to be left alone.
	Progress io.Writer

	// Controllers are the names of controllers to run on top of the namespace
	// controller, the garbage collector and the aggregation of cluster roles:
	// those of kube-controller-manager's flag --controllers, for example
	// "deployment-controller" and "replicaset-controller". WorkloadControllers
	// are those of all workloads. There are no nodes: a pod is never scheduled,
	// unless RunNode plays one.
	Controllers []string

	// APIServerFlags and ControllerManagerFlags are added to the command lines,
	// after those of the launcher, so that they win.
	APIServerFlags         []string
	ControllerManagerFlags []string

	// Fsync makes the store wait for the disk. Without it, data survive
	// every end of a process, SIGKILL included, but not a crash of the
	// machine. Default: off.
	Fsync bool
}

// CacheDir is the default of Config.CacheDir.
func CacheDir() (string, error) {
	if dir := os.Getenv(CacheVariable); dir != "" {
		return dir, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache folder: %w; set Config.CacheDir or %s", err, CacheVariable)
	}
	return filepath.Join(dir, "operatorkit"), nil
}

// complete returns the configuration with its defaults filled in.
func (c Config) complete() (Config, error) {
	if c.Progress == nil {
		c.Progress = os.Stderr
	}
	if c.BinaryPath == "" {
		c.BinaryPath = os.Getenv(BinaryVariable)
	}
	if c.CacheDir == "" {
		dir, err := CacheDir()
		if err != nil {
			return c, err
		}
		c.CacheDir = dir
	}
	for _, dir := range []*string{&c.CacheDir, &c.DataDir} {
		if *dir == "" {
			continue
		}
		absolute, err := filepath.Abs(*dir)
		if err != nil {
			return c, fmt.Errorf("resolve folder %s: %w", *dir, err)
		}
		*dir = absolute
	}
	return c, nil
}
