package natsserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Start starts a server that runs until the test ends, with its store in a temporary folder.
func Start(t testing.TB) *Server {
	t.Helper()
	s, err := Run(t.Context(), Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// Restart stops the server in good order, if it runs, and starts it again with the same port and the same store.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Stop()
	if err := s.start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Connect returns a connection to the server, which is closed when the test ends.
func (s *Server) Connect(t testing.TB, options ...nats.Option) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	return connectDirectly(t, s.URL(), options)
}

// connectDirectly is Connect to a server without a Link: it can't fall silent, and that it has ended is seen without asking
// it. A busy machine must not look like an outage.
func connectDirectly(t testing.TB, url string, options []nats.Option) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	return Connect(t, url, append([]nats.Option{nats.PingInterval(nats.DefaultPingInterval)}, options...)...)
}

// Connect returns a connection to a server, or to a [Link], which is closed when the test ends. It takes notice of a server
// that has fallen silent within a second or two, and reconnects for ever and fast; options are applied after that.
func Connect(t testing.TB, url string, options ...nats.Option) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	options = append([]nats.Option{
		nats.Timeout(5 * time.Second),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(20 * time.Millisecond),
		nats.ReconnectJitter(10*time.Millisecond, 10*time.Millisecond),
		nats.PingInterval(500 * time.Millisecond),
		nats.MaxPingsOutstanding(2),
		// The default prints to standard error whatever goes wrong, which is what these tests are about.
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	}, options...)
	conn, err := nats.Connect(url, options...)
	if err != nil {
		t.Fatalf("connect to %s: %v", url, err)
	}
	closed := make(chan struct{})
	conn.SetClosedHandler(func(*nats.Conn) { close(closed) })
	t.Cleanup(func() {
		conn.Close()
		<-closed
	})
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatalf("JetStream of %s: %v", url, err)
	}
	return conn, js
}

// storeFailed is the server's code for a stream whose files it could not create.
const storeFailed jetstream.ErrorCode = 10049

// noPeers is the code for a bucket whose replicas have no place, as before all servers of a cluster have met.
const noPeers jetstream.ErrorCode = 10005

// NewBucket creates a key-value bucket. That of a name which another bucket had a moment ago is waited for: the server removes the files of
// a deleted bucket after it has answered. So is a cluster that elects its leaders, or does not answer while it does.
func NewBucket(t testing.TB, js jetstream.JetStream, config jetstream.KeyValueConfig) jetstream.KeyValue {
	t.Helper()
	create := js.CreateKeyValue
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		kv, err := create(t.Context(), config)
		if err == nil {
			return kv
		}
		refused := (*jetstream.APIError)(nil)
		unanswered := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrNoResponders) || errors.Is(err, nats.ErrTimeout)
		elects := errors.As(err, &refused) && (refused.Code == http.StatusServiceUnavailable || refused.ErrorCode == noPeers)
		if unanswered {
			create = js.CreateOrUpdateKeyValue // It may have been created.
		}
		if failed := refused != nil && refused.ErrorCode == storeFailed; t.Context().Err() != nil || time.Now().After(deadline) || !failed && !unanswered && !elects {
			t.Fatalf("create bucket %s: %v", config.Bucket, err)
		}
	}
}

// NewMirror creates a bucket that is a mirror of another one, and returns when it has all that its origin has. A controller that is given it
// in place of its origin must read the same entries or refuse it: never take it for an empty bucket.
func NewMirror(t testing.TB, js jetstream.JetStream, origin, name string) jetstream.KeyValue {
	t.Helper()
	kv := NewBucket(t, js, jetstream.KeyValueConfig{Bucket: name, Mirror: &jetstream.StreamSource{Name: origin}})
	want, err := lastSequence(t.Context(), js, origin)
	for deadline := time.Now().Add(time.Minute); err == nil; time.Sleep(10 * time.Millisecond) {
		var got uint64
		if got, err = lastSequence(t.Context(), js, name); err == nil && got >= want {
			return kv
		}
		if err == nil && time.Now().After(deadline) {
			err = fmt.Errorf("it is at sequence %d, want %d", got, want)
		}
	}
	t.Fatalf("mirror %s of bucket %s: %v", name, origin, err)
	return nil
}

// lastSequence is the last one of a bucket's stream.
func lastSequence(ctx context.Context, js jetstream.JetStream, bucket string) (uint64, error) {
	stream, err := js.Stream(ctx, "KV_"+bucket)
	if err != nil {
		return 0, err
	}
	return stream.CachedInfo().State.LastSeq, nil
}

// Fill makes a bucket full: it takes nothing that makes it larger, until drain is called.
func Fill(t testing.TB, js jetstream.JetStream, bucket string) (drain func()) {
	t.Helper()
	stream, err := js.Stream(t.Context(), "KV_"+bucket)
	if err != nil {
		t.Fatal(err)
	}
	info := stream.CachedInfo()
	limit := func(bytes int64) {
		t.Helper()
		config := info.Config
		config.MaxBytes = bytes
		if _, err := js.UpdateStream(t.Context(), config); err != nil {
			t.Fatalf("limit bucket %s to %d bytes: %v", bucket, bytes, err)
		}
	}
	limit(max(int64(info.State.Bytes), 1)) //nolint:gosec // the size of a test's bucket
	return func() { limit(info.Config.MaxBytes) }
}
