package informer

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/operatorkit/operatorkit/context/secretscontext"
)

// SecretTransport returns a transport that marks the Secrets that are sent and received in a
// reconciliation, which it knows by the context of a request (MarkSecrets). It passes all other
// requests on unchanged. It fits the Wrap of a rest.Config; that of operator.Dependencies has it.
func SecretTransport(next http.RoundTripper) http.RoundTripper { return &secretTransport{next} }

type secretTransport struct{ next http.RoundTripper }

// secretPath is that of Secrets on an API server.
var secretPath = regexp.MustCompile(`/api/v1/(namespaces/[^/]+/)?secrets(/[^/]+)?$`)

// RoundTrip implements http.RoundTripper.
func (t *secretTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	watches, _ := strconv.ParseBool(r.URL.Query().Get("watch"))
	if secretscontext.From(r.Context()) == nil || watches || !secretPath.MatchString(r.URL.Path) {
		return t.next.RoundTrip(r)
	}
	markEncoded(r.Context(), sent(r))
	response, err := t.next.RoundTrip(r)
	if err != nil {
		return response, err
	}
	received, _ := received(response)
	markEncoded(r.Context(), received)
	return response, nil
}

// sent returns what a request sends, or nil. What is wrong with it is found out by those who send it.
func sent(r *http.Request) []byte {
	if r.GetBody == nil {
		return nil
	}
	body, err := r.GetBody()
	if err != nil {
		return nil
	}
	defer func() { _ = body.Close() }()
	content, _ := io.ReadAll(body)
	return content
}

// received returns what a response brings, which can be read from it once more, with the error at which it breaks off.
func received(response *http.Response) ([]byte, error) {
	content, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	response.Body = io.NopCloser(io.MultiReader(bytes.NewReader(content), failing{err}))
	return content, err
}

// markEncoded is MarkSecrets for what an API server is sent, or answers.
func markEncoded(ctx context.Context, encoded []byte) {
	if obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(encoded, nil, nil); err == nil {
		MarkSecrets(ctx, obj)
		return
	}
	var patch corev1.Secret
	if json.Unmarshal(encoded, &patch) == nil {
		MarkSecrets(ctx, &patch)
	}
}

// failing is a reader that ends with an error, or in peace without one.
type failing struct{ err error }

// Read implements io.Reader.
func (f failing) Read([]byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return 0, io.EOF
}

// WrappedRoundTripper lets others find the transport below, for example to close its connections.
func (t *secretTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// CloseIdleConnections is what http.Client.CloseIdleConnections looks for.
func (t *secretTransport) CloseIdleConnections() { utilnet.CloseIdleConnectionsFor(t.next) }
