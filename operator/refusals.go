package operator

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/giantswarm/micrologger"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/operatorkit/operatorkit/internal/access"
)

// refusals logs requests that the API server refuses for lack of rights, with the rule that would
// allow them. Each rule is logged once, whether a source, the election or the recorder of events
// sent the request.
type refusals struct {
	next   http.RoundTripper
	logger micrologger.Logger
	told   *sync.Map
}

func newRefusals(logger micrologger.Logger) func(http.RoundTripper) http.RoundTripper {
	told := &sync.Map{}
	return func(next http.RoundTripper) http.RoundTripper { return &refusals{next, logger, told} }
}

// WrappedRoundTripper lets apimachinery's helpers reach the transport below.
func (r *refusals) WrappedRoundTripper() http.RoundTripper { return r.next }

// CloseIdleConnections is what http.Client.CloseIdleConnections looks for.
func (r *refusals) CloseIdleConnections() { utilnet.CloseIdleConnectionsFor(r.next) }

// RoundTrip implements http.RoundTripper.
func (r *refusals) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.next.RoundTrip(req)
	// An operator that may not read definitions tries it, and works without it, see package
	// crdclient.
	if err != nil || resp.StatusCode != http.StatusForbidden || strings.HasPrefix(req.URL.Path, "/apis/"+apiextensionsv1.GroupName+"/") {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if status, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil); err == nil {
		r.tell(req, access.Advice(apierrors.FromObject(status)))
	}
	return resp, nil
}

func (r *refusals) tell(req *http.Request, advice string) {
	if _, told := r.told.LoadOrStore(advice, nil); advice == "" || told {
		return
	}
	r.logger.Log("level", "error", "message", "the API server refuses a request for lack of rights",
		"request", req.Method+" "+req.URL.Path, "advice", advice)
}
