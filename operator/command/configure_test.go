package command_test

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/operatortest"
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
