package command_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

// idle is an operator that has nothing to reconcile, with an election of its own.
func idle(configure func(context.Context, *operator.Dependencies, *operator.Config) error) command.Config {
	return command.Config{
		Name: "idle", KeepGlobalLoggers: true, Configure: configure,
		LeaderElection: operator.LeaderElectionConfig{Enabled: true, Name: "easel", Identity: "me", LeaseDuration: 40 * time.Second},
		New: func(_ context.Context, deps *operator.Dependencies) ([]*framework.Framework, error) {
			f, err := deps.NewFramework(framework.Config{Name: "idle", Source: informer.NewPush("idle"), Resources: []framework.Resource{&greeter{deps, "hello"}}})
			return []*framework.Framework{f}, err
		},
	}
}

// seen is what Configure sees of the flags.
type seen struct {
	Election operator.LeaderElectionConfig
	QPS      float32
	Burst    int
}

func TestFlagsGoBeforeTheConfigurationOfTheElectionAndAreSeenByConfigure(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	writeKubeconfig(t, kubeconfig, "http://127.0.0.1:1")
	configured := operator.LeaderElectionConfig{
		Enabled: true, Name: "easel", Identity: "me", LeaseDuration: 40 * time.Second, RenewDeadline: operator.DefaultRenewDeadline, RetryPeriod: operator.DefaultRetryPeriod,
	}
	changed := func(change func(*seen)) seen {
		s := seen{Election: configured, QPS: -1}
		change(&s)
		return s
	}
	tests := []struct {
		name string
		args []string
		want seen
	}{
		{"no flags", nil, changed(func(*seen) {})},
		{"off", []string{"--leader-elect=false"}, changed(func(s *seen) { s.Election.Enabled = false })},
		{"lease", []string{
			"--leader-election-name", "a", "--leader-election-namespace", "b", "--leader-election-lease-duration", "50s",
			"--leader-election-renew-deadline", "30s", "--leader-election-retry-period", "3s",
		}, changed(func(s *seen) {
			s.Election.Name, s.Election.Namespace = "a", "b"
			s.Election.LeaseDuration, s.Election.RenewDeadline, s.Election.RetryPeriod = 50*time.Second, 30*time.Second, 3*time.Second
		})},
		{"limits", []string{"--kube-api-qps", "20.5", "--kube-api-burst", "40", "--inspector-memory", "16Mi"}, changed(func(s *seen) { s.QPS, s.Burst = 20.5, 40 })},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got seen
			config := idle(func(_ context.Context, deps *operator.Dependencies, config *operator.Config) error {
				got = seen{config.LeaderElection, config.RESTConfig.QPS, config.RESTConfig.Burst}
				if got.Election.Fence != deps.Fence {
					t.Error("the fence is not that of the dependencies")
				}
				got.Election.Fence = nil
				return context.Canceled
			})
			var stderr bytes.Buffer
			code := command.Execute(t.Context(), config, append([]string{"run", "--kubeconfig", kubeconfig}, tt.args...), &stderr, &stderr)
			if want := "idle: configure the operator: context canceled\n"; code != command.ExitFailure || stderr.String() != want {
				t.Errorf("got %d %q, want %q", code, stderr.String(), want)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestALockOfTheConfigurationHasItsOwnNameAndNamespace(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	writeKubeconfig(t, kubeconfig, "http://127.0.0.1:1")
	lock, fence := &resourcelock.LeaseLock{}, operator.NewFence()
	config := idle(func(_ context.Context, deps *operator.Dependencies, config *operator.Config) error {
		e := config.LeaderElection
		if e.Lock != lock || e.Namespace+e.Name+e.Identity != "" || e.Fence != fence || deps.Fence != fence {
			t.Errorf("got %+v", e)
		}
		return context.Canceled
	})
	config.LeaderElection.Lock, config.LeaderElection.Fence = lock, fence
	var stderr bytes.Buffer
	command.Execute(t.Context(), config, []string{"run", "--kubeconfig", kubeconfig, "--leader-election-namespace", "b"}, &stderr, &stderr)
	if want := "idle: configure the operator: context canceled\n"; stderr.String() != want {
		t.Errorf("got %q, want %q", stderr.String(), want)
	}
}

func TestConfigureAddsRunnablesAndSources(t *testing.T) {
	instance := operatortest.Start(t)
	namespace := instance.Namespace(t)
	ctx, cancel := context.WithCancel(t.Context())
	synced := false
	config := idle(func(_ context.Context, deps *operator.Dependencies, config *operator.Config) error {
		source, err := deps.NewSource(&corev1.Secret{})
		if err != nil {
			return err
		}
		config.Sources = append(config.Sources, source)
		config.Runnables = append(config.Runnables, operator.Runnable{Name: "once", Run: func(ctx context.Context) error {
			defer cancel()
			err := source.WaitForSync(ctx)
			synced = err == nil
			return err
		}})
		return nil
	})
	stderr := &log{}
	code := command.Execute(ctx, config, []string{
		"run", "--kubeconfig", instance.Kubeconfig(), "--namespace", namespace, "--listen-address", "", "--inspector-address", "",
		"--leader-election-namespace", namespace, "--log-format", "text",
	}, stderr, stderr)
	if code != command.ExitOK || !synced {
		t.Errorf("exit code %d, synced %v:\n%s", code, synced, stderr)
	}
	if want := "leading lease=" + namespace + "/easel identity=me"; !strings.Contains(stderr.String(), want) {
		t.Errorf("the log lacks %q:\n%s", want, stderr)
	}
}

// settingsOf returns the settings of a namespace, or nil when there are none.
type settingsOf func(ctx context.Context, namespace string) (*corev1.ConfigMap, error)

// settingsByReader reads what the source holds as a client does.
func settingsByReader(deps *operator.Dependencies, source *informer.Kubernetes) settingsOf {
	reader := informer.NewReader(deps.Client.Scheme(), source)
	return func(ctx context.Context, namespace string) (*corev1.ConfigMap, error) {
		found := &corev1.ConfigMap{}
		err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "house"}, found)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return found, err
	}
}

// settingsBySource asks the source itself.
func settingsBySource(_ *operator.Dependencies, source *informer.Kubernetes) settingsOf {
	return func(_ context.Context, namespace string) (*corev1.ConfigMap, error) {
		if !source.Status().Synced {
			return nil, informer.ErrNotSynced // Frameworks wait for their own sources only.
		}
		found, exists, err := source.Get(informer.Key{Namespace: namespace, Name: "house"})
		if err != nil || !exists {
			return nil, err
		}
		return found.(*corev1.ConfigMap), nil
	}
}

// host is an operator that writes a letter for each guest, as the settings say, and none without settings. Configure adds their source.
func host(read func(*operator.Dependencies, *informer.Kubernetes) settingsOf) command.Config {
	labelled := func(label string) operator.SourceOption {
		return operator.WithLabels(labels.SelectorFromSet(labels.Set{label: "yes"}))
	}
	var source *informer.Kubernetes
	return command.Config{
		Name: "host", KeepGlobalLoggers: true,
		New: func(_ context.Context, deps *operator.Dependencies) ([]*framework.Framework, error) {
			guests, err := deps.NewSource(&corev1.ServiceAccount{}, labelled("guest"))
			if err != nil {
				return nil, err
			}
			if source, err = deps.NewSource(&corev1.ConfigMap{}, labelled("settings")); err != nil {
				return nil, err
			}
			settings := read(deps, source)
			letters, err := objectresource.NewTyped(objectresource.TypedConfig[*corev1.ServiceAccount, *corev1.ConfigMap]{
				Name: "letters", Client: deps.Client, Logger: deps.Logger,
				Desired: func(ctx context.Context, guest *corev1.ServiceAccount) ([]*corev1.ConfigMap, error) {
					found, err := settings(ctx, guest.Namespace)
					if err != nil || found == nil {
						return nil, err
					}
					return []*corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Name: guest.Name + "-letter"}, Data: found.Data}}, nil
				},
			})
			if err != nil {
				return nil, err
			}
			f, err := deps.NewFramework(framework.Config{Name: "guests", Source: guests, DisableFinalizer: true, Resources: []framework.Resource{letters}})
			return []*framework.Framework{f}, err
		},
		Configure: func(_ context.Context, _ *operator.Dependencies, config *operator.Config) error {
			config.Sources = append(config.Sources, source)
			return nil
		},
	}
}

func TestPlanAndApplyReadTheSourcesThatConfigureAdds(t *testing.T) {
	instance := operatortest.Start(t)
	user := operatortest.NewClient(t, instance.RESTConfig(), nil)
	for name, read := range map[string]func(*operator.Dependencies, *informer.Kubernetes) settingsOf{
		"by a reader": settingsByReader, "by the source": settingsBySource,
	} {
		t.Run(name, func(t *testing.T) {
			namespace, config := instance.Namespace(t), host(read)
			settings := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "house", Labels: map[string]string{"settings": "yes"}},
				Data:       map[string]string{"text": "hello"},
			}
			guest := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ann", Labels: map[string]string{"guest": "yes"}}}
			for _, o := range []client.Object{settings, guest} {
				if err := user.Create(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			says := func(text string) error {
				letter := &corev1.ConfigMap{}
				err := user.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "ann-letter"}, letter)
				if err == nil && letter.Data["text"] != text {
					err = fmt.Errorf("the letter says %q", letter.Data["text"])
				}
				return err
			}
			do := func(ctx context.Context, args ...string) string {
				var stdout, stderr bytes.Buffer
				args = append(args, "--kubeconfig", instance.Kubeconfig(), "--namespace", namespace)
				if code := command.Execute(ctx, config, args, &stdout, &stderr); code != command.ExitOK {
					t.Errorf("%v: exit code %d\n%s%s", args, code, &stdout, &stderr)
				}
				return stdout.String()
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan string, 1)
			go func() { ended <- do(ctx, "run", "--listen-address", "", "--inspector-address", "") }()
			operatortest.Eventually(t, "the letter is written", func() error { return says("hello") })
			cancel()
			<-ended

			file := filepath.Join(t.TempDir(), "plan")
			if text := do(t.Context(), "plan", "--out", file); !strings.Contains(text, "0 to create, 0 to update, 0 to delete") {
				t.Fatalf("there is more to do after the operator has done all:\n%s", text)
			}
			settings.Data["text"] = "welcome"
			if err := user.Update(t.Context(), settings); err != nil {
				t.Fatal(err)
			}
			if text := do(t.Context(), "plan", "--out", file); !strings.Contains(text, "0 to create, 1 to update, 0 to delete") {
				t.Errorf("the settings have changed, and the plan is:\n%s", text)
			}
			do(t.Context(), "apply", file)
			if err := says("welcome"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestR16FormerNamesOfTheCommandAreThoseOfItsFrameworks(t *testing.T) {
	instance := operatortest.Start(t)
	namespace := instance.Namespace(t)
	user := operatortest.NewClient(t, instance.RESTConfig(), nil)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}}
	if err := user.Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	// A slash and its length keep this name from being that of a Lease, a finalizer, or a field manager as it is.
	long := "team/" + strings.Repeat("gardener-", 30)
	for _, step := range []struct {
		name   string
		former []string
	}{{"farmer", nil}, {long, []string{"farmer"}}} {
		ctx, cancel := context.WithCancel(t.Context())
		finalizer := identity.Identity{Operator: step.name, Framework: "configmaps"}.Finalizer()
		config := command.Config{
			Name: step.name, FormerNames: step.former, KeepGlobalLoggers: true,
			New: func(_ context.Context, deps *operator.Dependencies) ([]*framework.Framework, error) {
				source, err := deps.NewSource(&corev1.ConfigMap{})
				if err != nil {
					return nil, err
				}
				f, err := deps.NewFramework(framework.Config{Source: source, Resources: []framework.Resource{&greeter{deps, "hello"}}})
				return []*framework.Framework{f}, err
			},
		}
		ended := make(chan int)
		stderr := &log{}
		go func() {
			ended <- command.Execute(ctx, config, []string{
				"run", "--kubeconfig", instance.Kubeconfig(), "--namespace", namespace, "--listen-address", "", "--inspector-address", "",
				"--leader-elect", "--leader-election-namespace", namespace, "--log-format", "text",
			}, stderr, stderr)
		}()
		operatortest.Eventually(t, "it is held by "+step.name, func() bool {
			if err := user.Get(t.Context(), client.ObjectKeyFromObject(cm), cm); err != nil {
				t.Fatal(err)
			}
			return len(cm.Finalizers) == 1 && cm.Finalizers[0] == finalizer
		})
		cancel()
		if code := <-ended; code != command.ExitOK {
			t.Errorf("exit code %d:\n%s", code, stderr)
		}
	}
}
