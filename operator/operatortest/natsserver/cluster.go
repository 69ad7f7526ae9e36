package natsserver

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// clusterSize is how many servers a cluster has: the least of which one may fail.
const clusterSize = 3

// peersVariable tells a process of its cluster: its own number and the ports of all members for one another, with commas between them.
const peersVariable = "OPERATORTEST_NATSSERVER_PEERS"

// peers are the members of a cluster. A nil one is that of a server without a cluster.
type peers struct {
	// own is the number of the member itself.
	own int
	// ports are those on which the members are there for one another.
	ports []int
}

// String returns what parsePeers reads.
func (p *peers) String() string {
	if p == nil {
		return ""
	}
	words := []string{strconv.Itoa(p.own)}
	for _, port := range p.ports {
		words = append(words, strconv.Itoa(port))
	}
	return strings.Join(words, ",")
}

func parsePeers(text string) (*peers, error) {
	if text == "" {
		return nil, nil
	}
	var numbers []int
	for word := range strings.SplitSeq(text, ",") {
		number, err := strconv.Atoi(word)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, number)
	}
	if len(numbers) < 2 || numbers[0] < 0 || numbers[0] >= len(numbers)-1 {
		return nil, fmt.Errorf("%q names no member of a cluster", text)
	}
	return &peers{own: numbers[0], ports: numbers[1:]}, nil
}

// join makes a server with these options a member of the cluster.
func (p *peers) join(options *server.Options) {
	if p == nil {
		return
	}
	options.ServerName = memberName(p.own)
	options.Cluster = server.ClusterOpts{Name: "operatortest", Host: loopback, Port: p.ports[p.own]}
	for i, port := range p.ports {
		if i != p.own {
			options.Routes = append(options.Routes, &url.URL{Scheme: "nats-route", Host: loopback + ":" + strconv.Itoa(port)})
		}
	}
}

func memberName(i int) string { return "operatortest-" + strconv.Itoa(i) }

// freePorts returns ports for the clients of members, and as many for the members themselves.
func freePorts() (clients, members []int, err error) {
	ports := make([]int, 2*clusterSize)
	for i := range ports {
		if ports[i], err = own.free(); err != nil {
			return nil, nil, err
		}
	}
	return ports[:clusterSize], ports[clusterSize:], nil
}

// RunCluster starts three servers in this process, with their stores in folders of dir, which keep buckets with Replicas: 3 together. It
// returns when they take requests. Each runs until its Stop is called; ctx is for the start alone.
func RunCluster(ctx context.Context, dir string) (servers []*Server, err error) {
	defer func() {
		if err != nil {
			for _, s := range servers {
				s.Stop()
			}
			servers, err = nil, fmt.Errorf("start a cluster of NATS servers: %w", err)
		}
	}()
	clients, members, err := freePorts()
	if err != nil {
		return nil, err
	}
	for i, port := range clients {
		s := &Server{dir: filepath.Join(dir, memberName(i)), port: port, peers: &peers{own: i, ports: members}}
		if err := s.start(ctx); err != nil {
			return servers, err
		}
		servers = append(servers, s)
	}
	for _, s := range servers {
		if err := untilReady(ctx, s.URL()); err != nil {
			return servers, err
		}
	}
	return servers, nil
}

// Cluster is three NATS servers that keep streams together, each a [Process] that can be killed and started again. Its methods must
// not be called concurrently.
type Cluster struct {
	members []*Process
}

// StartCluster starts a cluster that runs until the test ends, with its stores in temporary folders, and returns when it takes requests.
// The package's TestMain must call [Main]. Buckets with Replicas: 3 are kept by all of its servers.
func StartCluster(t testing.TB) *Cluster {
	t.Helper()
	clients, members, err := freePorts()
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{}
	for i, port := range clients {
		p := &Process{dir: t.TempDir(), port: port, peers: &peers{own: i, ports: members}}
		t.Cleanup(p.Kill)
		if err := p.spawn(); err != nil {
			t.Fatalf("start NATS server as a process: %v", err)
		}
		c.members = append(c.members, p)
	}
	for _, p := range c.members {
		p.awaitReady(t)
	}
	return c
}

// Members are the servers.
func (c *Cluster) Members() []*Process { return c.members }

// Connect returns a connection to whichever servers run, which is closed when the test ends.
func (c *Cluster) Connect(t testing.TB, options ...nats.Option) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	var urls []string
	for _, p := range c.members {
		urls = append(urls, p.URL())
	}
	return connectDirectly(t, strings.Join(urls, ","), options)
}

// Leader returns the server that leads a bucket, and waits for one to be elected.
func (c *Cluster) Leader(t testing.TB, js jetstream.JetStream, bucket string) *Process {
	t.Helper()
	var leader *Process
	c.await(t, "a leader of bucket "+bucket, func(ctx context.Context) error {
		info, err := c.inspect(ctx, js, bucket)
		if err != nil {
			return err
		}
		for i, p := range c.members {
			if info.Leader == memberName(i) && p.cmd != nil {
				leader = p
				return nil
			}
		}
		return fmt.Errorf("the leader is %q", info.Leader)
	})
	return leader
}

// KillLeader kills the server that leads a bucket, and returns it: its Start has it come back.
func (c *Cluster) KillLeader(t testing.TB, js jetstream.JetStream, bucket string) *Process {
	t.Helper()
	leader := c.Leader(t, js, bucket)
	leader.Kill()
	return leader
}

// AwaitCurrent waits until every server has all of a bucket.
func (c *Cluster) AwaitCurrent(t testing.TB, js jetstream.JetStream, bucket string) {
	t.Helper()
	c.await(t, "all servers have bucket "+bucket, func(ctx context.Context) error {
		info, err := c.inspect(ctx, js, bucket)
		if err != nil {
			return err
		}
		current := 1
		for _, replica := range info.Replicas {
			if replica.Current && !replica.Offline {
				current++
			}
		}
		if info.Leader == "" || current < len(c.members) {
			return fmt.Errorf("%d of %d have it", current, len(c.members))
		}
		return nil
	})
}

func (c *Cluster) inspect(ctx context.Context, js jetstream.JetStream, bucket string) (*jetstream.ClusterInfo, error) {
	stream, err := js.Stream(ctx, "KV_"+bucket)
	if err != nil {
		return nil, err
	}
	info := stream.CachedInfo().Cluster
	if info == nil {
		return nil, errors.New("it is not kept by a cluster")
	}
	return info, nil
}

// await asks until there is no error.
func (c *Cluster) await(t testing.TB, what string, ask func(context.Context) error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(readyPatience); time.Now().Before(deadline); time.Sleep(readyPeriod) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		err = ask(ctx)
		cancel()
		if err == nil {
			return
		}
	}
	t.Fatalf("there is not: %s: %v", what, err)
}
