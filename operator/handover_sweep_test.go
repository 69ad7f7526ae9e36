package operator_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

// shift runs the replicas that are on duty in a namespace, and ends the others. For the harness
// they are one operator, which crashes and lags as a whole.
type shift struct {
	mu     sync.Mutex
	onDuty map[string][]string
	lives  atomic.Int64
}

// are returns a step that puts these replicas on duty.
func (s *shift) are(replicas ...string) operatortest.Step {
	return func(_ context.Context, _ client.Client, namespace string) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.onDuty[namespace] = replicas
		return nil
	}
}

func (s *shift) now(namespace string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if replicas := s.onDuty[namespace]; replicas != nil {
		return replicas
	}
	return []string{"a"}
}

// start implements operatortest.Scenario.Start.
func (s *shift) start(ctx context.Context, config *rest.Config, namespace string) error {
	type replica struct {
		end   context.CancelFunc
		ended chan error
	}
	running := map[string]replica{}
	var failed []error
	stop := func(name string) {
		running[name].end()
		failed = append(failed, <-running[name].ended)
		delete(running, name)
	}
	for ctx.Err() == nil && errors.Join(failed...) == nil {
		now := s.now(namespace)
		for _, name := range now {
			if r, runs := running[name]; runs {
				select {
				case err := <-r.ended:
					r.end()
					delete(running, name)
					if !errors.Is(err, operator.ErrLeaseLost) { // A Pod that loses its Lease is restarted.
						failed = append(failed, err)
					}
				default:
				}
				continue
			}
			working, end := context.WithCancel(ctx)
			r := replica{end, make(chan error, 1)}
			go func() { r.ended <- runSharing(working, config, namespace, fmt.Sprintf("%s-%d", name, s.lives.Add(1))) }()
			running[name] = r
		}
		for _, name := range slices.Sorted(maps.Keys(running)) {
			if !slices.Contains(now, name) {
				stop(name)
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	for _, name := range slices.Sorted(maps.Keys(running)) {
		stop(name)
	}
	return errors.Join(failed...)
}

// runSharing runs a replica that creates a ConfigMap for each labelled ConfigMap of a namespace.
func runSharing(ctx context.Context, config *rest.Config, namespace, identity string) error {
	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		return err
	}
	d, err := operator.NewDependencies(operator.DependenciesConfig{
		Name: "sharing", RESTConfig: config, Scheme: clientgoscheme.Scheme, Logger: logger, Namespaces: []string{namespace},
	})
	if err != nil {
		return err
	}
	defer d.Close()
	source, err := d.NewSource(&corev1.ConfigMap{}, operator.WithLabels(labels.SelectorFromSet(labels.Set{"of": "sharing"})))
	if err != nil {
		return err
	}
	owned, err := d.Own(&corev1.ConfigMap{}, &corev1.ConfigMap{})
	if err != nil {
		return err
	}
	copies, err := objectresource.New(objectresource.Config[*corev1.ConfigMap]{
		Name: "copies", Client: d.Client, Logger: logger, Stores: owned.Stores,
		Desired: func(_ context.Context, cm *corev1.ConfigMap) ([]client.Object, error) {
			var desired []client.Object
			for name, text := range cm.Data {
				desired = append(desired, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"text": text}})
			}
			return desired, nil
		},
	})
	if err != nil {
		return err
	}
	f, err := d.NewFramework(framework.Config{Source: source, Watches: owned.Watches, Resources: []framework.Resource{copies}})
	if err != nil {
		return err
	}
	o, err := operator.New(operator.Config{
		Name: "sharing", RESTConfig: config, Logger: logger, Frameworks: []*framework.Framework{f}, Sharding: operator.ShardingConfig{Enabled: true},
		LeaderElection: operator.LeaderElectionConfig{
			Enabled: true, Namespace: namespace, Identity: identity,
			LeaseDuration: 6 * time.Second, RenewDeadline: 4 * time.Second, RetryPeriod: 100 * time.Millisecond,
		},
	})
	if err != nil {
		return err
	}
	return o.Run(ctx)
}

// handovers is the life of an object in a slot that passes from one replica to the next in each
// phase.
func handovers() operatortest.Scenario {
	s := &shift{onDuty: map[string][]string{}}
	copies := func(want ...string) operatortest.Step {
		return func(ctx context.Context, user client.Client, namespace string) error {
			var list corev1.ConfigMapList
			if err := user.List(ctx, &list, client.InNamespace(namespace), client.HasLabels{objectresource.OwnerLabel}); err != nil {
				return err
			}
			got := []string{}
			for _, cm := range list.Items {
				got = append(got, cm.Name+"="+cm.Data["text"])
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				return fmt.Errorf("the copies are %q, want %q", got, want)
			}
			return nil
		}
	}
	set := func(data string) operatortest.Step {
		return func(ctx context.Context, user client.Client, namespace string) error {
			return user.Patch(ctx, configMap(namespace, "home"), client.RawPatch("application/merge-patch+json", []byte(data)))
		}
	}
	both := func(first, second operatortest.Step) operatortest.Step {
		return func(ctx context.Context, user client.Client, namespace string) error {
			return errors.Join(first(ctx, user, namespace), second(ctx, user, namespace))
		}
	}
	home := labelled("", "home", "sharing")
	home.Data = map[string]string{"one": "1", "two": "1"}
	return operatortest.Scenario{
		Name: "handovers", Parallel: 4, Start: s.start,
		Phases: []operatortest.Phase{
			{Name: "create", Do: operatortest.Create(home), Until: copies("one=1", "two=1")},
			{Name: "change while b takes over from a", Do: both(s.are("b"), set(`{"data":{"one":"2","two":null,"three":"2"}}`)), Until: copies("one=2", "three=2")},
			{Name: "change while c takes over from b", Do: both(set(`{"data":{"one":"3","three":"3"}}`), s.are("c")), Until: copies("one=3", "three=3")},
			{Name: "delete while a takes over from c", Do: both(s.are("a"), operatortest.Delete(home)), Until: both(copies(), operatortest.Gone(home))},
		},
		Objects: []client.Object{&corev1.ConfigMap{}}, Normalize: objectresource.Normalize, Timeout: 3 * time.Minute,
	}
}

func TestTheNextHolderOfASlotMayHaveAnOldCache(t *testing.T) {
	t.Parallel()
	operatortest.LagAtEveryWrite(t, handovers())
}

func TestASlotMovesWhateverWriteItsReplicasCrashAt(t *testing.T) {
	t.Parallel()
	operatortest.CrashAtEveryWrite(t, handovers())
}
