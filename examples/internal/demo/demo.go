// Package demo runs an example for somebody who watches: it starts a control plane, runs the example's operator on it,
// and tells what happens to which objects while it happens.
//
//	func main() {
//		demo.Main(demo.Story{Name: "quickstart", Operator: quickstart.Config, Tell: tell, ...})
//	}
//
//	func tell(ctx context.Context, d *demo.Demo) error {
//		d.Step("creating a Website")
//		err := d.Plan(ctx, website) // what the operator is going to do about it
//		...
//		return d.Until(ctx, "its page is there", func(ctx context.Context) (bool, error) { ... })
//	}
//
// With the flag --once the program ends when the story has been told, with exit status 0, or 1 when something did not
// come to pass. Without it, the operator goes on until Ctrl-C. Either way everything that was started is ended.
package demo

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// patience is how long Until waits before it says that something will not come to pass.
const patience = 3 * time.Minute

// Story says what an example is and what is to be shown of it.
type Story struct {
	// Name is the name of the example.
	Name string
	// Require returns what keeps the example from running here, before anything is started. Default: nothing does.
	Require func() error
	// Operator is what the command line of the operator is made of. It is run until the story ends. A story without one runs
	// what it is about by Demo.Go.
	Operator command.Config
	// Replicas are how many processes of the operator there are, which share its objects. Default: one, which is this process.
	Replicas int
	// Shared returns what is told instead with the flag --replicas, of that many replicas. It has the same Operator. Default: nothing is,
	// and there is no such flag.
	Shared func(replicas int) Story
	// AddToScheme make types known to Demo.Client that neither Kubernetes nor the operator has. Default: none.
	AddToScheme []func(*runtime.Scheme) error
	// Clusters are the names of further control planes, which run beside that of the operator (Demo.Clusters). They are
	// contexts of its kubeconfig, too. Controllers are those that run on them on top of the usual ones.
	Clusters, Controllers []string
	// Prepare makes what has to be there before the operator starts. Default: nothing.
	Prepare func(ctx context.Context, d *Demo) error
	// Tell does what a user would do, and waits for what has to come of it.
	Tell func(ctx context.Context, d *Demo) error
	// Kinds are the kinds of objects whose changes are printed.
	Kinds []client.ObjectList
	// Told are texts in what the operator logs about things that the story tells itself. Such log entries are not shown.
	Told []string
	// Look is a command that shows the objects of the story.
	Look string
	// Try are commands that are worth trying afterwards.
	Try []string
}

// scheme returns the types that Demo.Client knows.
func (s Story) scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range slices.Concat([]func(*runtime.Scheme) error{clientgoscheme.AddToScheme}, s.Operator.AddToScheme, s.AddToScheme) {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("add to the scheme: %w", err)
		}
	}
	return scheme, nil
}

// Demo is what a story is told with.
type Demo struct {
	// Client may do everything.
	Client client.WithWatch
	// RESTConfig is for other clients, and for operators.
	RESTConfig *rest.Config
	// Clusters are the control planes of Story.Clusters, by name.
	Clusters map[string]*operatortest.Instance
	// Namespace is where the story takes place.
	Namespace string
	// Folder is for files. It goes when the story is over.
	Folder string
	// Try are commands that are worth trying when the story has been told: those of the Story, or what Tell sets.
	Try []string

	printer *printer
	program *program
	// replicas are those that were started, also those that were killed.
	replicas []*Replica
	// parts are what runs beside the story, first started first, and fail ends the story because one of them has ended.
	parts []*part
	fail  func()
	// stopOperator ends the operator. It is nil if there is none in this process.
	stopOperator func() error
}

// Main tells a story and ends the process.
func Main(story Story) {
	if name := os.Getenv(replicaVariable); name != "" {
		os.Exit(operateReplica(story, name, os.Stdin))
	}
	once := flag.Bool("once", false, "end when the story has been told")
	replicas := 1
	if story.Shared != nil {
		flag.IntVar(&replicas, "replicas", replicas, "how many replicas of the operator share the work; another story is told of more than one")
	}
	flag.Parse()
	if replicas > 1 {
		story = story.Shared(replicas)
	}
	// What goes wrong is said by the story; without a logger, controller-runtime complains about that.
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, story, *once, os.Stdout, os.Stderr)
	if err == nil && *once && ctx.Err() != nil {
		err = errors.New("it was interrupted before everything had converged")
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "failed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, story Story, once bool, out, progress io.Writer) (err error) {
	if story.Require != nil {
		if err := story.Require(); err != nil {
			return err
		}
	}
	scheme, err := story.scheme()
	if err != nil {
		return err
	}
	d := &Demo{printer: newPrinter(out), Namespace: story.Name, Try: story.Try}
	d.printer.title("operatorkit example: " + story.Name)

	kube, err := d.start(ctx, story, progress)
	defer func() {
		d.Step("stopping what was started")
		err = errors.Join(err, d.stop(kube))
	}()
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	d.Note("look at it with  " + story.Look)
	d.Note("or set           KUBECONFIG=" + kube.Kubeconfig())

	d.RESTConfig, d.Folder = kube.RESTConfig(), kube.DataDir()
	d.Client, err = client.NewWithWatch(d.RESTConfig, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	err = d.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: d.Namespace}})
	if err != nil {
		return fmt.Errorf("create the namespace: %w", err)
	}
	d.program = newProgram(story, kube.Kubeconfig())
	return d.tell(ctx, story, once)
}

// start starts all control planes, that of the operator last, so that kubectl finds it by itself.
func (d *Demo) start(ctx context.Context, story Story, progress io.Writer) (kube *operatortest.Instance, err error) {
	if len(story.Clusters) == 0 {
		d.Step("starting a control plane: etcd, kube-apiserver, kube-controller-manager")
	} else {
		d.Step("starting %d control planes (etcd, kube-apiserver, kube-controller-manager): the clusters %s, and that of the operator",
			len(story.Clusters)+1, strings.Join(story.Clusters, ", "))
	}
	if d.Clusters, err = startClusters(ctx, story, progress); err != nil {
		return nil, err
	}
	if kube, err = operatortest.Run(ctx, operatortest.Config{Progress: progress}); err != nil {
		return nil, err
	}
	return kube, addContexts(kube.Kubeconfig(), d.Clusters)
}

// stop stops all control planes that run.
func (d *Demo) stop(kube *operatortest.Instance) error {
	err := stopClusters(d.Clusters)
	if kube != nil {
		err = errors.Join(err, kube.Stop(context.Background()))
	}
	return err
}

// tell tells the story on the control plane, with all that runs beside it, and ends that.
func (d *Demo) tell(ctx context.Context, story Story, once bool) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	d.fail = cancel
	defer func() { err = errors.Join(err, d.stopParts()) }()

	if story.Prepare != nil {
		if err := story.Prepare(ctx, d); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
	if err := d.operate(story); err != nil {
		return err
	}
	for _, kind := range story.Kinds {
		watching.Go(func() { d.watch(ctx, kind) })
	}

	err = story.Tell(ctx, d)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		return err
	case once:
		d.Step("done: everything has converged")
	default:
		d.Step("everything has converged; the operator goes on until Ctrl-C. Try:")
		for _, command := range d.Try {
			d.Note(command)
		}
		<-ctx.Done()
	}
	d.Step("stopping the operator")
	return nil
}

// operate runs the program of the operator, if the story has one.
func (d *Demo) operate(story Story) error {
	switch {
	case story.Operator.Name == "":
		return nil
	case story.Replicas > 1:
		d.Step("starting %d replicas of the operator", story.Replicas)
		for range story.Replicas {
			if _, err := d.StartReplica(); err != nil {
				return err
			}
		}
		return nil
	}
	metrics, err := FreeAddress()
	if err != nil {
		return err
	}
	page, err := FreeAddress()
	if err != nil {
		return err
	}
	d.Step("starting the operator")
	d.Note("watch it at      http://" + page + "/")
	d.Note("metrics are at   http://" + metrics + "/metrics")
	d.program.metrics, d.program.page = metrics, page
	d.startOperator()
	return nil
}

// startOperator starts the operator at its addresses.
func (d *Demo) startOperator() {
	d.stopOperator = d.Go("the operator", func(ctx context.Context) error {
		err := d.program.operate(ctx)
		if err == nil {
			// It ends well because it was told to: by Ctrl-C too, of which the story may hear a moment later.
			<-ctx.Done()
		}
		return err
	})
}

// Replace ends the operator, and starts another build of it at the same addresses.
func (d *Demo) Replace(build command.Config) error {
	if err := d.stopOperator(); err != nil {
		return err
	}
	build.KeepGlobalLoggers = true
	d.program.config = build
	d.startOperator()
	return nil
}

// Run runs a command of the operator and shows what it writes. It returns the exit code.
func (d *Demo) Run(ctx context.Context, heading string, args ...string) (code int, err error) {
	err = d.Show(heading, func(w io.Writer, _ bool) error {
		code = command.Execute(ctx, d.program.config, append(args, "--kubeconfig", d.program.kubeconfig), w, w)
		return nil
	})
	return code, err
}

// ExitCode runs a command of the operator and returns its exit code.
func (d *Demo) ExitCode(ctx context.Context, args ...string) int {
	return command.Execute(ctx, d.program.config, append(args, "--kubeconfig", d.program.kubeconfig), io.Discard, io.Discard)
}

// FreeAddress finds a free port on loopback.
func FreeAddress() (string, error) {
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

// Change says that something was created ("+"), changed ("~") or deleted ("-"), or has said something ("!"), and what.
func (d *Demo) Change(sign, thing, what string) { d.printer.change(sign, thing, what) }

// Told tells whether a change of a thing with that sign has been told: things change before that is told.
func (d *Demo) Told(sign, thing string) bool { return d.printer.hasTold(sign, thing) }

// Show shows what write writes, which is in colours if color is true, and returns its error.
func (d *Demo) Show(heading string, write func(w io.Writer, color bool) error) error {
	var out bytes.Buffer
	err := write(&out, d.printer.color)
	if out.Len() > 0 {
		d.Note(heading)
		d.printer.block(out.String())
	}
	return err
}

// Done says that something has come to pass.
func (d *Demo) Done(text string) { d.printer.done(text) }

// Until waits until something has come to pass, and says so. It is an error if it does not within three minutes.
func (d *Demo) Until(ctx context.Context, what string, condition func(context.Context) (bool, error)) error {
	start := time.Now()
	if err := d.Wait(ctx, what, condition); err != nil {
		return err
	}
	d.Done(fmt.Sprintf("%s (%s)", what, time.Since(start).Round(time.Millisecond)))
	return nil
}

// Wait is Until without a word.
func (d *Demo) Wait(ctx context.Context, what string, condition func(context.Context) (bool, error)) error {
	start := time.Now()
	var last error
	for {
		done, err := condition(ctx)
		if done && err == nil {
			return nil
		}
		last = err
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
		if time.Since(start) > patience {
			return errors.Join(fmt.Errorf("gave up after %s waiting until %s", patience, what), last)
		}
	}
}
