package fetch

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

const userAgent = "operatorkit"

// maxHeader bounds the header of an answer, in bytes.
const maxHeader = 256 << 10

// origin is whom credentials are for.
type origin struct{ scheme, host, port string }

func originOf(u *url.URL) origin {
	o := origin{strings.ToLower(u.Scheme), strings.ToLower(u.Hostname()), u.Port()}
	if o.port == "" {
		o.port = map[string]string{"http": "80", "https": "443"}[o.scheme]
	}
	return o
}

// client returns an HTTP client for an origin. It shows the client certificate to that origin only, takes the login off at
// the first redirect that leads elsewhere, and never goes from encrypted to plain. Its connections end with the function
// that comes with it.
func (f *Fetcher) client(c Credentials, to origin) (*http.Client, func()) {
	others := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.roots},
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: maxHeader,
		// An archive is taken as it is, also by a server that says its compression is one of the transfer.
		DisableCompression: true,
	}
	own := others.Clone()
	if c.certificate != nil {
		own.TLSClientConfig.Certificates = []tls.Certificate{*c.certificate}
	}
	client := &http.Client{
		Transport:     guard{origin: to, own: own, others: others},
		CheckRedirect: f.checkRedirect,
	}
	return client, func() {
		own.CloseIdleConnections()
		others.CloseIdleConnections()
	}
}

// guard chooses the transport for a request.
type guard struct {
	origin      origin
	own, others http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (g guard) RoundTrip(req *http.Request) (*http.Response, error) {
	to := originOf(req.URL)
	if to.scheme != "https" && g.origin.scheme != "http" {
		return nil, permanent(ErrUntrusted, "let it be offered over https://",
			"%s leads to %s, which is not encrypted", shownOrigin(g.origin), shownOrigin(to))
	}
	if to == g.origin {
		return g.own.RoundTrip(req)
	}
	return g.others.RoundTrip(req)
}

// checkRedirect bounds redirects. The login goes as soon as one of them leads to another origin, and stays away when a
// further one leads back.
func (f *Fetcher) checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > f.limits.Redirects {
		return tooLarge("Limits.Redirects", "use the address that they lead to", "there are more than %d redirects", f.limits.Redirects)
	}
	req.Header.Del("Referer")
	first := originOf(via[0].URL)
	away := originOf(req.URL) != first
	for _, r := range via {
		away = away || originOf(r.URL) != first
	}
	if away {
		req.Header.Del("Authorization")
		req.Header.Del("Cookie")
	}
	return nil
}

// parseAddress parses an address of a template.
func parseAddress(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil, permanent(ErrInvalid, "mend the address in the template", "its address can't be parsed")
	}
	if u.User != nil {
		return nil, permanent(ErrInvalid, "put them as username and password into a Secret, and name it in secretName",
			"its address has credentials in it")
	}
	return u, nil
}

// shown is an address without what may be secret: user, query and fragment.
func shown(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an address that can't be parsed"
	}
	return fmt.Sprintf("%s://%s%s", u.Scheme, u.Host, u.EscapedPath())
}

func shownOrigin(o origin) string { return o.scheme + "://" + net.JoinHostPort(o.host, o.port) }

// loopback tells whether a host is this machine.
func loopback(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
