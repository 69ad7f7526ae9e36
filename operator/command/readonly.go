package command

import (
	"fmt"
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/operatorkit/operatorkit/operator/internal/requests"
)

// readOnly is a round tripper that lets no request through that would change anything. It stands behind the promise of
// "plan" also where an author's code writes although it should only compute.
type readOnly struct{ next http.RoundTripper }

func newReadOnly(next http.RoundTripper) http.RoundTripper { return readOnly{next} }

// RoundTrip implements http.RoundTripper.
func (r readOnly) RoundTrip(req *http.Request) (*http.Response, error) {
	if requests.Writes(req) {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, fmt.Errorf("%s %s is refused, because a plan writes nothing: "+
			"write in the Apply functions of a resource, not where it computes", req.Method, req.URL.Path)
	}
	return r.next.RoundTrip(req)
}

// WrappedRoundTripper lets apimachinery's helpers reach the transport below.
func (r readOnly) WrappedRoundTripper() http.RoundTripper { return r.next }

// CloseIdleConnections is what http.Client.CloseIdleConnections looks for.
func (r readOnly) CloseIdleConnections() { utilnet.CloseIdleConnectionsFor(r.next) }
