// Package demo runs an example for somebody who watches: it starts a control plane, runs the example's operator on it,
// and tells what happens to which objects while it happens.
//
//	func main() {
//		demo.Main(demo.Story{Name: "quickstart", Scheme: scheme, Operator: runOperator, Tell: tell, ...})
//	}
//
//	func tell(ctx context.Context, d *demo.Demo) error {
//		d.Step("creating a Website")
//		...
//		return d.Until(ctx, "its page is there", func(ctx context.Context) (bool, error) { ... })
//	}
//
// With the flag --once the program ends when the story has been told, with exit status 0, or 1 when something did not
// come to pass. Without it, the operator goes on until Ctrl-C. Either way everything that was started is ended.
package demo

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// patience is how long Until waits before it says that something will not come to pass.
const patience = time.Minute

// Story says what an example is and what is to be shown of it.
type Story struct {
	// Name is the name of the example.
	Name string
	// Scheme knows the example's types.
	Scheme *runtime.Scheme
	// Operator runs the operator until ctx ends, with its health and metrics on the address.
	Operator func(ctx context.Context, kubeconfig, address string) error
	// Tell does what a user would do, and waits for what has to come of it.
	Tell func(ctx context.Context, d *Demo) error
	// Kinds are the kinds of objects whose changes are printed.
	Kinds []client.ObjectList
	// Look is a command that shows the objects of the story.
	Look string
	// Try are commands that are worth trying afterwards.
	Try []string
}

// Demo is what a story is told with.
type Demo struct {
	// Client may do everything.
	Client client.WithWatch
	// Namespace is where the story takes place.
	Namespace string

	printer *printer
	failed  chan error
}

// Main tells a story and ends the process.
func Main(story Story) {
	once := flag.Bool("once", false, "end when the story has been told")
	flag.Parse()
	// What goes wrong is said by the story; without a logger, controller-runtime complains about that.
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, story, *once, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "failed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, story Story, once bool, out, progress io.Writer) (err error) {
	d := &Demo{printer: newPrinter(out), Namespace: story.Name, failed: make(chan error, 1)}
	d.printer.title("operatorkit example: " + story.Name)

	d.Step("starting a control plane: etcd, kube-apiserver, kube-controller-manager")
	kube, err := operatortest.Run(ctx, operatortest.Config{Progress: progress})
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer func() {
		d.Step("stopping the control plane")
		err = errors.Join(err, kube.Stop(context.Background()))
	}()
	d.Note("look at it with  " + story.Look)
	d.Note("or set           KUBECONFIG=" + kube.Kubeconfig())

	d.Client, err = client.NewWithWatch(kube.RESTConfig(), client.Options{Scheme: story.Scheme})
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	err = d.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: d.Namespace}})
	if err != nil {
		return fmt.Errorf("create the namespace: %w", err)
	}
	return d.tell(ctx, story, kube.Kubeconfig(), once)
}

// tell runs the operator and the story on the control plane, and ends both.
func (d *Demo) tell(ctx context.Context, story Story, kubeconfig string, once bool) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()

	address, err := freeAddress()
	if err != nil {
		return err
	}
	d.Step("starting the operator")
	d.Note("metrics are at   http://" + address + "/metrics")
	ended := make(chan error, 1)
	running.Go(func() {
		err := story.Operator(ctx, kubeconfig, address)
		if err == nil && ctx.Err() == nil {
			err = errors.New("the operator ended by itself")
		}
		ended <- err
		cancel()
	})
	for _, kind := range story.Kinds {
		running.Go(func() { d.watch(ctx, kind) })
	}

	err = story.Tell(ctx, d)
	switch {
	case ctx.Err() != nil:
		err = <-ended
	case err == nil && once:
		d.Step("done: everything has converged")
	case err == nil:
		d.Step("everything has converged; the operator goes on until Ctrl-C. Try:")
		for _, command := range story.Try {
			d.Note(command)
		}
		<-ctx.Done()
		err = <-ended
	}
	if err == nil || ctx.Err() != nil {
		d.Step("stopping the operator")
	}
	return err
}

// freeAddress finds a free port on loopback.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String(), nil
}

// Step says what is done next.
func (d *Demo) Step(format string, args ...any) { d.printer.step(fmt.Sprintf(format, args...)) }

// Note says something about the current step.
func (d *Demo) Note(text string) { d.printer.note(text) }

// Until waits until something has come to pass, and says so. It is an error if it does not within a minute.
func (d *Demo) Until(ctx context.Context, what string, condition func(context.Context) (bool, error)) error {
	start := time.Now()
	var last error
	for {
		done, err := condition(ctx)
		if done && err == nil {
			d.printer.done(fmt.Sprintf("%s (%s)", what, time.Since(start).Round(time.Millisecond)))
			return nil
		}
		last = err
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
		if time.Since(start) > patience {
			return fmt.Errorf("gave up after %s waiting until %s: last error: %w", patience, what, last)
		}
	}
}
