package target

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/operatorkit/operatorkit/internal/cut"
)

// ErrUnreachable is in the chain of every error that says that a cluster can't be asked anything now: of each
// [UnreachableError].
var ErrUnreachable = errors.New("the cluster can't be reached")

// ErrNotRunning says that [Clusters] do not run yet, or not any more.
var ErrNotRunning = errors.New("target clusters are not running")

// ErrReleased is the error of requests to a cluster that was dropped because nobody used it.
var ErrReleased = errors.New("the cluster was dropped because nobody had acquired it: acquire it before use")

// Causes why a request ended that nobody cancelled.
var (
	errMoved       = errors.New("the kubeconfig of the cluster has changed, or is gone")
	errForeignHost = errors.New("requests to other servers, and redirects to them, are refused")
	errTooLarge    = errors.New("the answer is too large")
)

// maxMessage is how much of a cause is told, in bytes: it may hold what a foreign server says.
const maxMessage = 512

// UnreachableError is the error of a request that was not sent, because it could not succeed. It comes at once.
// errors.As finds it in the errors of all clients of a [Cluster].
type UnreachableError struct {
	// Cluster is whom the request was for.
	Cluster Key
	// State tells why: Unreachable, CredentialRefused, ClusterMissing, SecretMissing or KubeconfigInvalid.
	State State
	// Since is since when it has been so.
	Since time.Time
	// NextTry is when the cluster is probed next. It is zero when nothing helps but another kubeconfig, which is noticed at
	// once.
	NextTry time.Time
	// Cause is the last error, which says what to do where a person has to.
	Cause error
}

// Error implements error.
func (e *UnreachableError) Error() string {
	next := ""
	if !e.NextTry.IsZero() {
		next = ", next try at " + e.NextTry.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("%s: %s since %s%s: %s",
		describe(e.Cluster), e.State, e.Since.UTC().Format(time.RFC3339), next, notTransient.Replace(brief(e.Cause)))
}

// Unwrap returns ErrUnreachable. The cause is not in the chain, because client-go repeats requests ten times, a second apart,
// when it finds certain errors of connections there.
func (e *UnreachableError) Unwrap() error { return ErrUnreachable }

// notTransient rewords what makes client-go repeat a request if it stands in the text of its error: see IsProbableEOF and
// IsHTTP2ConnectionLost in k8s.io/apimachinery/pkg/util/net.
var notTransient = strings.NewReplacer(
	"connection reset by peer", "connection was reset by peer",
	"use of closed network connection", "connection is closed",
	"http2: client connection lost", "http2: connection lost",
	"http2: server sent GOAWAY and closed the connection", "http2: server sent GOAWAY",
)

// timeoutError is a request that took too long. It is a net.Error, which client-go and others recognise.
type timeoutError struct{ after time.Duration }

func (e timeoutError) Error() string { return fmt.Sprintf("no answer within %s", e.after) }

// Timeout implements net.Error.
func (timeoutError) Timeout() bool { return true }

// Temporary implements net.Error.
func (timeoutError) Temporary() bool { return true }

var _ net.Error = timeoutError{}

// describe names a cluster in messages.
func describe(cluster Key) string {
	if cluster == (Key{}) {
		return "the management cluster"
	}
	return "cluster " + cluster.String()
}

// brief tells an error in the same words each time, without the port of our side, and not at any length.
func brief(err error) string {
	if err == nil {
		return ""
	}
	var request *url.Error
	if errors.As(err, &request) {
		err = request.Err
	}
	text := err.Error()
	var operation *net.OpError
	if errors.As(err, &operation) {
		sourceless := *operation
		sourceless.Source = nil
		text = sourceless.Error()
	}
	return cut.Text(text, maxMessage)
}
