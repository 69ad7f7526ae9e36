package operatortest_test

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestWhatWasWrittenSurvives(t *testing.T) {
	t.Parallel()
	kube := operatortest.Start(t, operatortest.Dedicated())
	client := newClient(t, kube.RESTConfig())
	host := kube.RESTConfig().Host
	namespace := kube.Namespace(t)
	for i, end := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"a restart", kube.Restart},
		{"the API server's death and a resumption", func(ctx context.Context) error {
			return firstError(kube.KillAPIServer(), unreachable(ctx, client), kube.Resume(ctx))
		}},
		{"etcd's death and a resumption", func(ctx context.Context) error {
			return firstError(kube.KillEtcd(), unreachable(ctx, client), kube.Resume(ctx))
		}},
		{"etcd's death and a restart", func(ctx context.Context) error {
			return firstError(kube.KillEtcd(), kube.Restart(ctx))
		}},
		{"the death of both and a resumption", func(ctx context.Context) error {
			return firstError(kube.KillEtcd(), kube.KillAPIServer(), kube.Resume(ctx))
		}},
		{"a resumption of what runs", kube.Resume},
	} {
		if testing.Short() && i%2 == 1 {
			continue // with the one before and the one after it, and make test-all has it
		}
		name := "written-before-" + strings.ReplaceAll(strings.NewReplacer("'s", "", "API", "api").Replace(end.name), " ", "-")
		createConfigMap(t, client, namespace, name)
		if err := end.do(t.Context()); err != nil {
			t.Fatalf("%s: %v", end.name, err)
		}
		// The same client, hence the same address and certificates.
		if _, err := client.CoreV1().ConfigMaps(namespace).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Errorf("after %s: %v", end.name, err)
		}
		if now := kube.RESTConfig().Host; now != host {
			t.Errorf("after %s the address is %s, was %s", end.name, now, host)
		}
	}

	// The controllers are back as well.
	owner := createConfigMap(t, client, namespace, "owner")
	createConfigMap(t, client, namespace, "owned", metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID})
	if err := client.CoreV1().ConfigMaps(namespace).Delete(t.Context(), "owner", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the owned object is gone", func() bool { return configMapGone(t, client, namespace, "owned") })
}

// unreachable returns an error if a read of the newest state succeeds. The
// server gives up on it after a second.
func unreachable(ctx context.Context, client kubernetes.Interface) error {
	timeout := int64(1)
	_, err := client.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{TimeoutSeconds: &timeout})
	if err == nil {
		return errReachable
	}
	return nil
}

func TestADataFolderIsUsedAgainButByOneAtATime(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: it starts control planes one after the other")
	}
	t.Parallel()
	dataDir := filepath.Join(t.TempDir(), "data")
	first, err := operatortest.Run(t.Context(), operatortest.Config{DataDir: dataDir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = first.Stop(context.Background()) })
	createConfigMap(t, newClient(t, first.RESTConfig()), "default", "settings")

	_, err = operatortest.Run(t.Context(), operatortest.Config{DataDir: dataDir})
	if err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second control plane with the same data folder: %v", err)
	}

	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := first.Stop(t.Context()); err != nil {
		t.Errorf("stopped again: %v", err)
	}
	if err := first.Restart(t.Context()); err == nil {
		t.Error("restarted after it was stopped")
	}
	second, err := operatortest.Run(t.Context(), operatortest.Config{DataDir: dataDir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = second.Stop(context.Background()) })
	if _, err := newClient(t, second.RESTConfig()).CoreV1().ConfigMaps("default").Get(t.Context(), "settings", metav1.GetOptions{}); err != nil {
		t.Errorf("the object of the earlier instance: %v", err)
	}
	if string(first.RESTConfig().CAData) != string(second.RESTConfig().CAData) {
		t.Error("the authority changed: clients of the earlier instance don't trust this one")
	}
}

func TestStopRemovesATemporaryFolder(t *testing.T) {
	t.Parallel()
	kube, err := operatortest.Run(t.Context(), operatortest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(kube.DataDir(), "logs", "kube-apiserver.log")); err != nil {
		t.Errorf("the log: %v", err)
	}
	if err := kube.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(kube.DataDir()); !os.IsNotExist(err) {
		t.Errorf("the data folder is still there: %v", err)
	}
}

func TestAPartThatEndsWhileItIsStartedIsAnErrorWithItsLog(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		config operatortest.Config
		want   string
	}{
		"API server":         {operatortest.Config{APIServerFlags: []string{"--no-such-flag"}}, "unknown flag: --no-such-flag"},
		"controller manager": {operatortest.Config{Controllers: []string{"no-such-controller"}}, `no-such-controller\" is not in the list`},
	} {
		t.Run(name, func(t *testing.T) {
			kube, err := operatortest.Run(t.Context(), test.config)
			if err == nil {
				_ = kube.Stop(t.Context())
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v\nwant %s", err, test.want)
			}
		})
	}
}

func TestARunThatIsCancelledLeavesNothing(t *testing.T) {
	dataDir := filepath.Join(t.TempDir(), "data")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := operatortest.RunOnPorts(ctx, operatortest.Config{DataDir: dataDir}, func(n int) ([]int, error) {
		cancel() // just before the processes are started
		return operatortest.FreePorts(n)
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
	if left := processesOf(t, dataDir); len(left) != 0 {
		t.Errorf("processes left: %v", left)
	}
}

// TestAControlPlaneThatNeverServedIsBegunAnew is about a program that ended when etcd had made its log and had not written into it who its
// members are, and about one that ended while it wrote certificates. It takes milliseconds to get further, so what was written since is
// taken away again.
func TestAControlPlaneThatNeverServedIsBegunAnew(t *testing.T) {
	t.Parallel()
	config := operatortest.Config{DataDir: filepath.Join(t.TempDir(), "data")}
	without := config
	// It trusts another authority than that of its store, and waits for one that it trusts.
	without.APIServerFlags = []string{"--etcd-cafile=" + filepath.Join(config.DataDir, "certificates", "serving-ca.crt")}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		_, err := operatortest.Run(ctx, without)
		failed <- err
	}()
	var log string
	operatortest.Eventually(t, "etcd has written its members into its log", func() bool {
		logs, err := filepath.Glob(filepath.Join(config.DataDir, "etcd", "member", "wal", "*.wal"))
		if err != nil || len(logs) == 0 {
			return false
		}
		log = logs[0]
		return membersIn(log) > 0
	})
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Fatalf("%v, want %v", err, context.Canceled)
	}
	end, err := os.Stat(log)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(config.DataDir, "etcd", "member", "snap", "db")); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{membersIn(log), end.Size()} {
		if err := os.Truncate(log, size); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(filepath.Join(config.DataDir, "certificates", "tokens.csv"), 0); err != nil {
		t.Fatal(err)
	}

	kube, err := operatortest.Run(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = kube.Stop(context.Background()) }()
	createConfigMap(t, newClient(t, kube.RESTConfig()), "default", "settings")
}

// membersIn returns where the first entry begins in a log of etcd, and 0 when there is none. Each record has its length before it, whose
// highest byte says how many zeros follow it, and begins with its kind.
func membersIn(log string) int64 {
	const kindField, entry, state = 1 << 3, 2, 3
	file, err := os.Open(log)
	if err != nil {
		return 0
	}
	defer func() { _ = file.Close() }()
	for at := int64(0); ; {
		var head [10]byte
		if _, err := file.ReadAt(head[:], at); err != nil || head[8] != kindField {
			return 0
		}
		if head[9] == entry || head[9] == state {
			return at
		}
		length := binary.LittleEndian.Uint64(head[:8])
		at += 8 + int64(length&(1<<56-1)) + int64(length>>56&7) //nolint:gosec // a log is smaller than that
	}
}
