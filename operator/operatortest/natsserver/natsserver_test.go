package natsserver_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/natsserver"
)

// parentVariable makes the test binary start a server as a process, say its URL, and wait to be killed.
const parentVariable = "NATSSERVER_TEST_PARENT"

func TestMain(m *testing.M) {
	natsserver.Main()
	if dir := os.Getenv(parentVariable); dir != "" {
		url, err := natsserver.SpawnServer(dir)
		fmt.Println(url, err)
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	operatortest.VerifyTestMain(m)
}

func put(t *testing.T, kv jetstream.KeyValue, key, value string) {
	t.Helper()
	if _, err := kv.PutString(t.Context(), key, value); err != nil {
		t.Fatalf("put %s: %v", key, err)
	}
}

// eventuallyHolds waits until a key has the value; requests are repeated while clients reconnect.
func eventuallyHolds(t *testing.T, kv jetstream.KeyValue, key, value string) {
	t.Helper()
	operatortest.Eventually(t, fmt.Sprintf("%s is %q", key, value), func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		entry, err := kv.Get(ctx, key)
		if err != nil {
			return err
		}
		if got := string(entry.Value()); got != value {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
}

func TestAServerThatIsStartedAgainHasItsPortAndItsStore(t *testing.T) {
	server := natsserver.Start(t)
	_, js := server.Connect(t)
	kv := natsserver.NewBucket(t, js, jetstream.KeyValueConfig{Bucket: "b"})
	put(t, kv, "x", "1")
	url := server.URL()

	server.Stop()
	if conn, err := nats.Connect(url); err == nil {
		conn.Close()
		t.Fatal("a stopped server accepts connections")
	}
	server.Restart(t)
	eventuallyHolds(t, kv, "x", "1")
	server.Restart(t)
	eventuallyHolds(t, kv, "x", "1")
}

func TestNobodyIsGivenThePortOfAStoppedServer(t *testing.T) {
	server := natsserver.Start(t)
	server.Stop()
	for range 150 {
		for who, find := range map[string]func() (int, error){"this process": natsserver.FreePort, "another process": natsserver.FreePortOfAnother} {
			port, err := find()
			if err != nil {
				t.Fatal(err)
			}
			if url := fmt.Sprintf("nats://127.0.0.1:%d", port); url == server.URL() {
				t.Fatalf("%s was given the port of %s", who, url)
			}
		}
	}
	server.Restart(t)
}

func TestAProgramNamesFolderAndPort(t *testing.T) {
	first, err := natsserver.Run(t.Context(), natsserver.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Stop()
	var port int
	if _, err := fmt.Sscanf(first.URL(), "nats://127.0.0.1:%d", &port); err != nil {
		t.Fatal(err)
	}
	if second, err := natsserver.Run(t.Context(), natsserver.Config{Dir: t.TempDir(), Port: port}); err == nil {
		second.Stop()
		t.Error("a second server started on the same port")
	}
	if _, err := natsserver.Run(t.Context(), natsserver.Config{}); err == nil || !strings.Contains(err.Error(), "Dir") {
		t.Errorf("a server without a folder: %v", err)
	}
}

func TestAKilledProcessKeepsWhatItAcknowledged(t *testing.T) {
	server := natsserver.StartProcess(t)
	_, js := server.Connect(t)
	kv := natsserver.NewBucket(t, js, jetstream.KeyValueConfig{Bucket: "b"})
	for i := range 100 {
		put(t, kv, "x", fmt.Sprint(i))
	}
	server.Restart(t)
	eventuallyHolds(t, kv, "x", "99")
}

func TestAServerProcessEndsWithTheProcessThatStartedIt(t *testing.T) {
	parent := exec.CommandContext(t.Context(), os.Args[0])
	parent.Env = append(os.Environ(), parentVariable+"="+t.TempDir())
	stdin, err := parent.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close() }()
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	url, failure, _ := strings.Cut(strings.TrimSpace(line), " ")
	if err != nil || failure != "<nil>" {
		t.Fatalf("the parent said %q (%v)", line, err)
	}
	operatortest.Eventually(t, "the server is up", func() error { return connect(url) })

	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	operatortest.Eventually(t, "the server is gone", func() bool { return connect(url) != nil })
}

func connect(url string) error {
	conn, err := nats.Connect(url, nats.Timeout(time.Second))
	if err == nil {
		conn.Close()
	}
	return err
}

func TestALinkThatIsCutRefusesUntilItIsRestored(t *testing.T) {
	server := natsserver.Start(t)
	link := natsserver.NewLink(t, server.URL())
	conn, js := natsserver.Connect(t, link.URL())
	kv := natsserver.NewBucket(t, js, jetstream.KeyValueConfig{Bucket: "b"})
	put(t, kv, "x", "1")

	link.Cut()
	operatortest.Eventually(t, "the client notices", func() bool { return conn.Status() == nats.RECONNECTING })
	if err := connect(link.URL()); err == nil {
		t.Error("a link that is cut accepts connections")
	}
	link.Restore()
	operatortest.Eventually(t, "the client is back", func() bool { return conn.Status() == nats.CONNECTED })
	eventuallyHolds(t, kv, "x", "1")
}

func TestALinkThatIsFrozenDeliversNothingUntilItIsRestored(t *testing.T) {
	server := natsserver.Start(t)
	link := natsserver.NewLink(t, server.URL())
	// This client is patient, so that it has the same connection before and after.
	conn, js := natsserver.Connect(t, link.URL(), nats.PingInterval(time.Minute))
	kv := natsserver.NewBucket(t, js, jetstream.KeyValueConfig{Bucket: "b"})
	put(t, kv, "x", "1")

	link.Freeze()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := kv.Get(ctx, "x"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a read through a frozen link: %v", err)
	}
	if conn.Status() != nats.CONNECTED {
		t.Errorf("the client was told: %s", conn.Status())
	}
	link.Restore()
	eventuallyHolds(t, kv, "x", "1")
	if got := conn.Stats().Reconnects; got != 0 {
		t.Errorf("the client has reconnected %d times", got)
	}
}

func TestAFrozenLinkCanBeCut(t *testing.T) {
	server := natsserver.Start(t)
	link := natsserver.NewLink(t, server.URL())
	conn, _ := natsserver.Connect(t, link.URL())
	link.Freeze()
	link.Cut()
	operatortest.Eventually(t, "the client notices", func() bool { return conn.Status() == nats.RECONNECTING })
	link.Restore()
	operatortest.Eventually(t, "the client is back", func() bool { return conn.Status() == nats.CONNECTED })
}

func TestAClusterKeepsWhatItAcknowledgedWhenALeaderIsKilled(t *testing.T) {
	cluster := natsserver.StartCluster(t)
	_, js := cluster.Connect(t)
	kv := natsserver.NewBucket(t, js, jetstream.KeyValueConfig{Bucket: "b", Replicas: 3})
	put(t, kv, "x", "1")
	cluster.AwaitCurrent(t, js, "b")

	killed := cluster.KillLeader(t, js, "b")
	eventuallyHolds(t, kv, "x", "1")
	if leader := cluster.Leader(t, js, "b"); leader == killed {
		t.Error("a server that was killed leads")
	}
	operatortest.Eventually(t, "it is written without the one that was killed", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := kv.PutString(ctx, "x", "2")
		return err
	})
	killed.Start(t)
	cluster.AwaitCurrent(t, js, "b")
	eventuallyHolds(t, kv, "x", "2")
}
