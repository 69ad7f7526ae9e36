package natscontroller_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/logging"
	"github.com/operatorkit/operatorkit/operator/natscontroller"
	"github.com/operatorkit/operatorkit/operator/natscontroller/natslease"
)

// The environment variables that make the test binary run as a replica.
const (
	replicaVariable    = "NATSCONTROLLER_REPLICA"
	urlVariable        = "NATSCONTROLLER_URL"
	kubeconfigVariable = "NATSCONTROLLER_KUBECONFIG"
	namespaceVariable  = "NATSCONTROLLER_NAMESPACE"
)

// The times of the leases of replicas: one that runs holds its lease on a busy machine too, and one that is stopped loses
// it within the time that a test has.
const (
	leaseDuration = 16 * time.Second
	renewDeadline = 12 * time.Second
	retryPeriod   = 200 * time.Millisecond
)

// trap is the gateway in whose reconciliation the first replica is stopped.
const trap = "trap"

// runReplica runs the process as a replica and ends it, if it was started for that.
func runReplica() {
	identity := os.Getenv(replicaVariable)
	if identity == "" {
		return
	}
	err := replicate(identity)
	fmt.Println("ended:", err)
	if err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// replicate runs a controller until SIGTERM. With a kubeconfig, its lease is kept in Kubernetes.
func replicate(identity string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	logger, err := logging.New(logging.Config{Writer: os.Stderr, Level: logging.LevelError})
	if err != nil {
		return err
	}
	conn, err := nats.Connect(os.Getenv(urlVariable), nats.MaxReconnects(-1), nats.ReconnectBufSize(-1))
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	fence := operator.NewFence()
	m := &mirroring{writer: identity, trapped: identity == "a", input: bufio.NewReader(os.Stdin)}
	gateways, err := natsinformer.NewBucket(natsinformer.BucketConfig[*Gateway]{JetStream: js, Name: "gateways", Fence: fence.Check})
	if err != nil {
		return err
	}
	if m.routes, err = natsinformer.NewBucket(natsinformer.BucketConfig[*Route]{JetStream: js, Name: "routes", Fence: fence.Check}); err != nil {
		return err
	}
	if m.unfenced, err = natsinformer.NewBucket(natsinformer.BucketConfig[*Route]{JetStream: js, Name: "routes"}); err != nil {
		return err
	}
	source, err := natsinformer.NewSource(natsinformer.SourceConfig[*Gateway]{Bucket: gateways, Logger: logger})
	if err != nil {
		return err
	}
	config := natscontroller.Config[*Gateway]{
		Name: "gateway-controller", Kind: kind, Logger: logger, Primary: source, Resources: []framework.Resource{m},
		LeaderElection: operator.LeaderElectionConfig{
			Enabled: true, Fence: fence, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		},
	}
	if kubeconfig := os.Getenv(kubeconfigVariable); kubeconfig != "" {
		if config.RESTConfig, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
			return err
		}
		config.RESTConfig.Wrap(fence.Transport)
		m.namespace = os.Getenv(namespaceVariable)
		if m.kube, err = client.New(config.RESTConfig, client.Options{Scheme: clientgoscheme.Scheme}); err != nil {
			return err
		}
		config.LeaderElection.Namespace, config.LeaderElection.Identity = m.namespace, identity
	} else {
		config.LeaderElection.Lock, err = natslease.New(natslease.Config{JetStream: js, Bucket: "leases", Key: "gateway-controller", Identity: identity})
		if err != nil {
			return err
		}
	}
	c, err := natscontroller.NewControllerRuntime(config)
	if err != nil {
		return err
	}
	return c.Start(ctx)
}

// mirroring writes the revision of each gateway, and its own name, into a route of the same name.
type mirroring struct {
	writer           string
	routes, unfenced *natsinformer.Bucket[*Route]
	kube             client.Client
	namespace        string
	trapped          bool
	input            *bufio.Reader
}

func (m *mirroring) Name() string { return "mirror" }

func (m *mirroring) EnsureCreated(ctx context.Context, obj any) error {
	gateway := obj.(*Gateway)
	route, err := m.routes.Get(ctx, gateway.Name)
	switch {
	case apierrors.IsNotFound(err):
		route = &Route{Meta: natsinformer.Meta{Name: gateway.Name, OwnerKind: kind, OwnerKey: gateway.Name}, Host: mark(gateway, m.writer)}
		return m.routes.Create(ctx, route)
	case err != nil:
		return err
	case strings.HasPrefix(route.Host, mark(gateway, "")):
		return nil
	}
	if m.trapped && gateway.Name == trap {
		return m.wait(gateway, route)
	}
	route.Host = mark(gateway, m.writer)
	return m.routes.Update(ctx, route)
}

func (m *mirroring) EnsureDeleted(context.Context, any) error { return nil }

// wait stops in the middle of an update until the test says go on, and then tells what becomes of it.
func (m *mirroring) wait(gateway *Gateway, route *Route) error {
	fmt.Println("trapped")
	if _, err := m.input.ReadString('\n'); err != nil {
		return err
	}
	route.Host = mark(gateway, m.writer)
	ctx := context.Background()
	fmt.Println("fenced write refused:", errors.Is(m.routes.Update(ctx, route), operator.ErrLeaseLost))
	if m.kube != nil {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: "late"}}
		fmt.Println("fenced request refused:", errors.Is(m.kube.Create(ctx, cm), operator.ErrLeaseLost))
	}
	fmt.Println("unfenced write refused:", apierrors.IsConflict(m.unfenced.Update(ctx, route)))
	return nil
}

// mark is what a route says of a gateway: which revision was carried over by whom.
func mark(gateway *Gateway, writer string) string {
	return fmt.Sprintf("%d by %s", gateway.Revision(), writer)
}

// replica is a controller in a process of its own.
type replica struct {
	t     testing.TB
	cmd   *exec.Cmd
	input io.WriteCloser
	lines chan string
}

func startReplica(t testing.TB, identity string, environment ...string) *replica {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &replica{t: t, cmd: exec.Command(binary), lines: make(chan string, 100)}
	r.cmd.Env = append(os.Environ(), append(environment, replicaVariable+"="+identity)...)
	r.cmd.Stderr = os.Stderr
	r.input, err = r.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(r.lines)
		for scanner := bufio.NewScanner(output); scanner.Scan(); {
			r.lines <- scanner.Text()
		}
	}()
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		<-read
		_ = r.cmd.Wait()
	})
	return r
}

func (r *replica) signal(s syscall.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.t.Fatal(err)
	}
}

// expect waits for the next line that the replica prints.
func (r *replica) expect(want string) {
	r.t.Helper()
	select {
	case line, ok := <-r.lines:
		if !ok || !strings.Contains(line, want) {
			r.t.Fatalf("the replica printed %q, want %q", line, want)
		}
	case <-time.After(time.Minute):
		r.t.Fatalf("the replica does not print %q", want)
	}
}
