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

// SecretTransport returns a transport that marks the Secrets that a reconciliation sends and
// receives (MarkSecrets). It recognises the reconciliation by the context of the request. It passes
// all other requests on unchanged. It fits the Wrap of a rest.Config. The config of
// operator.Dependencies has it.
func SecretTransport(next http.RoundTripper) http.RoundTripper { return &secretTransport{next} }

type secretTransport struct{ next http.RoundTripper }

// secretPath matches the path of Secrets on an API server.
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

// sent returns the body of a request, or nil. Errors are left to the sender.
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

// received returns the body of a response and the error that ended it. The body can be read once
// more from the response.
func received(response *http.Response) ([]byte, error) {
	content, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	response.Body = io.NopCloser(io.MultiReader(bytes.NewReader(content), failing{err}))
	return content, err
}

// markEncoded is MarkSecrets for an encoded body.
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

// failing is a reader that ends with err, or with io.EOF if that is nil.
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
