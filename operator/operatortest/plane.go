package operatortest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

const (
	loopback = "127.0.0.1"

	// stopGrace is how long a part may take to end by itself.
	stopGrace = 5 * time.Second
	// portsTaken is how often other ports are tried.
	portsTaken = 5
)

// plane is the three processes of one control plane and the folder they work in.
type plane struct {
	config     Config
	ports      func(n int) ([]int, error)
	dataDir    string
	temporary  bool // the folder goes when the plane stops
	begun      bool // the folder's API server has never been ready
	kubeconfig string

	mu          sync.Mutex // everything below
	stopped     bool
	lock        *flock.Flock
	etcd        *process
	apiServer   *process
	controllers *process
	record      string // file that makes the instance known to kubectl
}

// running holds every plane that is not stopped. A program may forget its
// Instance: without this, the garbage collector would then close the pipes, and
// with them end the processes.
var running sync.Map // of *plane to nothing

var (
	errStopped = errors.New("the control plane is stopped")
	errNoPort  = errors.New("a port was taken by another process")
)

// startPlane starts a control plane. On an error nothing of it stays.
func startPlane(ctx context.Context, config Config, startedBy starter) (*plane, error) {
	return startPlaneOnPorts(ctx, config, startedBy, freePorts)
}

func startPlaneOnPorts(ctx context.Context, config Config, startedBy starter, ports func(n int) ([]int, error)) (_ *plane, err error) {
	config, err = config.complete()
	if err != nil {
		return nil, err
	}
	binary, err := findBinary(ctx, config)
	if err != nil {
		return nil, err
	}
	p := &plane{config: config, ports: ports, dataDir: config.DataDir}
	running.Store(p, nil)
	defer func() {
		if err != nil {
			_ = p.stop(context.WithoutCancel(ctx))
		}
	}()
	if err := p.prepareDataDir(); err != nil {
		return nil, err
	}
	certs, err := makeCertificates(p.certificatesDir())
	if err != nil {
		return nil, err
	}
	for range portsTaken {
		if err = p.startOnNewPorts(ctx, binary, certs); !errors.Is(err, errNoPort) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	p.record, err = register(config.CacheDir, p.kubeconfig, startedBy)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// prepareDataDir makes the data folder and keeps others out of it.
func (p *plane) prepareDataDir() error {
	if p.dataDir == "" {
		dir, err := os.MkdirTemp("", "operatortest-")
		if err != nil {
			return fmt.Errorf("make a data folder: %w", err)
		}
		p.dataDir, p.temporary = dir, true
	}
	if err := os.MkdirAll(filepath.Join(p.dataDir, "logs"), 0o700); err != nil {
		return fmt.Errorf("make the data folder: %w", err)
	}
	lock := flock.New(filepath.Join(p.dataDir, "lock"))
	locked, err := lock.TryLock()
	if err != nil {
		return fmt.Errorf("lock data folder %s: %w", p.dataDir, err)
	}
	if !locked {
		return fmt.Errorf("data folder %s is in use by another control plane: stop that one, or set another Config.DataDir", p.dataDir)
	}
	p.lock = lock
	return p.begin()
}

// begin finds out whether the data folder's control plane has ever served. A program that ends while it starts one leaves a folder that may
// be good for nothing: certificates that are half written, or an etcd that was killed when it had made its log and not written into it who
// its members are, and that would wait for a leader for ever. Such a folder is begun anew.
func (p *plane) begin() error {
	if p.begun = exists(p.begunFile()); p.begun {
		if err := os.RemoveAll(p.certificatesDir()); err != nil {
			return fmt.Errorf("remove the certificates of a control plane that has never served: %w", err)
		}
		return nil
	}
	if exists(p.storeDir()) {
		return nil
	}
	p.begun = true
	if err := os.WriteFile(p.begunFile(), nil, 0o600); err != nil {
		return fmt.Errorf("note that the control plane has not served: %w", err)
	}
	return nil
}

// served notes that the data folder is to be kept as it is.
func (p *plane) served() error {
	if !p.begun {
		return nil
	}
	if err := os.Remove(p.begunFile()); err != nil {
		return fmt.Errorf("note that the control plane has served: %w", err)
	}
	p.begun = false
	return nil
}

func (p *plane) storeDir() string        { return filepath.Join(p.dataDir, "etcd") }
func (p *plane) certificatesDir() string { return filepath.Join(p.dataDir, "certificates") }

// begunFile is there from the first start in a data folder until its API server has been ready.
func (p *plane) begunFile() string { return filepath.Join(p.dataDir, "operatortest-begun") }

// startOnNewPorts defines the processes and starts them. The error is errNoPort
// when another process was faster to take a port.
func (p *plane) startOnNewPorts(ctx context.Context, binary string, certs *certificates) error {
	ports, err := p.ports(3)
	if err != nil {
		return err
	}
	etcdURL, host := localURL(ports[0]), localURL(ports[1])
	p.kubeconfig = filepath.Join(p.dataDir, "kubeconfig")
	if err := writeKubeconfig(p.kubeconfig, host, p.dataDir, certs.serving.certPEM, certs.administrator); err != nil {
		return err
	}
	if err := os.WriteFile(certs.path(auditPolicyFile), []byte(auditPolicy), 0o600); err != nil {
		return fmt.Errorf("write the policy of the audit log: %w", err)
	}
	controllersKubeconfig := certs.path("kube-controller-manager.kubeconfig")
	if err := writeKubeconfig(controllersKubeconfig, host, p.dataDir, certs.serving.certPEM, certs.controllers); err != nil {
		return err
	}
	p.etcd = p.process(binary, "etcd", etcdArgs(etcdURL, p.storeDir(), certs, p.config))
	p.apiServer = p.process(binary, "kube-apiserver", apiServerArgs(ports[1], etcdURL, p.dataDir, certs, p.config))
	p.apiServer.readyURL = host + "/readyz"
	p.controllers = p.process(binary, "kube-controller-manager", controllersArgs(ports[2], controllersKubeconfig, certs, p.config))
	p.controllers.readyURL = localURL(ports[2]) + "/healthz"
	if p.begun { // before, or on ports one of which was taken
		if err := os.RemoveAll(p.storeDir()); err != nil {
			return fmt.Errorf("remove a store that has never served: %w", err)
		}
	}
	err = p.startMissing(ctx)
	for _, part := range p.parts() {
		if err != nil && strings.Contains(part.tail(), "address already in use") {
			p.killAll()
			return fmt.Errorf("%w: %w", errNoPort, err)
		}
	}
	return err
}

// thrift is the environment that lets Go collect less garbage as long as a process is small: that takes a third of the processor time of a
// start. What the user has set comes first.
var thrift = map[string]string{"GOGC": "400", "GOMEMLIMIT": "1GiB"}

func (p *plane) process(binary, name string, args []string) *process {
	env := []string{"OPERATORTEST_PARENT_PIPE=stdin", "OPERATORTEST_REMOVE_DIR="}
	if p.temporary {
		env[1] += p.dataDir
	}
	for name, value := range thrift {
		if os.Getenv(name) == "" {
			env = append(env, name+"="+value)
		}
	}
	return &process{name: name, binary: binary, args: args, env: env, logFile: filepath.Join(p.dataDir, "logs", name+".log")}
}

// startMissing starts what isn't running, and returns when the API server and
// the controllers are ready.
func (p *plane) startMissing(ctx context.Context) error {
	if p.etcd.running() && p.apiServer.running() && p.controllers.running() {
		return nil
	}
	// Controllers whose API server was away wait longer and longer to try
	// again: new ones are there sooner.
	p.controllers.kill()
	for _, part := range []*process{p.etcd, p.apiServer} {
		if part.running() {
			continue
		}
		if err := part.start(); err != nil {
			return err
		}
	}
	if err := p.waitForAPIServer(ctx); err != nil {
		return err
	}
	if err := p.served(); err != nil {
		return err
	}
	if err := p.controllers.start(); err != nil {
		return err
	}
	return p.waitReady(ctx, p.controllers, p.parts()...)
}

// storeTries is how often the API server is started anew because it has given up on the store.
const storeTries = 5

// storeWasLate is what an API server says last that has waited for its store in vain, be it for a connection or for an answer.
var storeWasLate = regexp.MustCompile(`error creating storage factory: .*context deadline exceeded`)

// waitForAPIServer waits until the API server is ready. It gives a store that does not answer yet twenty seconds, and ends:
// on a machine that is busy, that may be too early.
func (p *plane) waitForAPIServer(ctx context.Context) error {
	for try := 1; ; try++ {
		err := p.waitReady(ctx, p.apiServer, p.etcd, p.apiServer)
		if err == nil || p.apiServer.running() || !p.etcd.running() || !storeWasLate.MatchString(p.apiServer.tail()) {
			return err
		}
		if try == storeTries {
			return fmt.Errorf("%w\nThe log of its store is %s and ends with:\n%s", err, p.etcd.logFile, p.etcd.tail())
		}
		if err := p.apiServer.start(); err != nil {
			return err
		}
	}
}

// restart stops all processes and starts them with the same data and ports.
func (p *plane) restart(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return errStopped
	}
	p.stopAll(ctx)
	return p.startMissing(ctx)
}

// resume starts the processes that aren't running.
func (p *plane) resume(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return errStopped
	}
	return p.startMissing(ctx)
}

// kill ends one process with SIGKILL.
func (p *plane) kill(part *process) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return errStopped
	}
	part.kill()
	return nil
}

// stop ends all processes and removes what was temporary. It may be called
// again, and on a plane that never quite started.
func (p *plane) stop(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return nil
	}
	p.stopped = true
	p.stopAll(ctx)
	running.Delete(p)
	var errs []error
	if p.record != "" {
		errs = append(errs, os.Remove(p.record))
	}
	if p.lock != nil {
		errs = append(errs, p.lock.Close())
	}
	if p.temporary {
		errs = append(errs, os.RemoveAll(p.dataDir))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("clean up after the control plane: %w", err)
	}
	return nil
}

// stopAll ends the processes, those first that need the others.
func (p *plane) stopAll(ctx context.Context) {
	if p.etcd != nil && !p.etcd.running() {
		// The others would spend the grace period waiting for it.
		p.killAll()
		return
	}
	for _, part := range p.parts() {
		part.stop(ctx, stopGrace)
	}
}

func (p *plane) killAll() {
	for _, part := range p.parts() {
		part.kill()
	}
}

// parts are the processes, each before those that it needs.
func (p *plane) parts() []*process {
	if p.etcd == nil {
		return nil
	}
	return []*process{p.controllers, p.apiServer, p.etcd}
}

func localURL(port int) string {
	return "https://" + net.JoinHostPort(loopback, strconv.Itoa(port))
}
