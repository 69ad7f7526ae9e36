package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"
)

// status is an answer of a web server other than the one that was asked for.
type status int

func (s status) Error() string { return fmt.Sprintf("status %d %s", int(s), http.StatusText(int(s))) }

// explain makes the error that people see out of whatever went wrong. What servers write into their answers is left out:
// it may repeat credentials, and says rarely more than the status.
func (f *Fetcher) explain(w wanted, err error) error {
	var e *Error
	if errors.As(err, &e) {
		said := *e
		said.What, said.Reason = w.what, w.credentials.scrub(e.Reason)
		return &said
	}
	var gone *goneError
	if errors.As(err, &gone) {
		return fmt.Errorf("fetch %s: %w", w.what, gone)
	}
	e = f.classify(w, err)
	e.What = w.what
	return e
}

func (f *Fetcher) classify(w wanted, err error) *Error {
	if errors.Is(err, context.DeadlineExceeded) {
		return passing(ErrUnavailable, "look whether it is reachable from here, or raise Limits.Timeout in the operator's configuration",
			"there was no complete answer within %v", f.limits.Timeout)
	}
	if e := classifyTLS(w, err); e != nil {
		return e
	}
	var registry *errcode.ErrorResponse
	var server status
	switch {
	case errors.Is(err, ErrUnauthorized):
		return classifyStatus(w, http.StatusUnauthorized)
	case errors.As(err, &registry):
		return classifyStatus(w, registry.StatusCode)
	case errors.As(err, &server):
		return classifyStatus(w, int(server))
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return classifyStatus(w, http.StatusUnauthorized)
	case errors.Is(err, errdef.ErrNotFound):
		return classifyStatus(w, http.StatusNotFound)
	case errors.Is(err, content.ErrMismatchedDigest), errors.Is(err, content.ErrTrailingData):
		return passing(ErrDigest, "push it again if this stays so", "the registry sent other bytes than its manifest promises")
	case errors.Is(err, errdef.ErrInvalidReference):
		return permanent(ErrInvalid, "mend it in the template", "it is no reference of an OCI registry")
	}
	return passing(ErrUnavailable, "", "%s", plain(w, err))
}

func classifyTLS(w wanted, err error) *Error {
	var alert *net.OpError
	var verification *tls.CertificateVerificationError
	switch {
	case errors.As(err, &verification):
		e := permanent(ErrUntrusted, "put the certificate of its authority into the key ca.crt of the Secret in secretName",
			"the certificate of the server is not trusted (%s)", plain(w, verification.Err))
		var name x509.HostnameError
		var certificate x509.CertificateInvalidError
		if errors.As(err, &name) {
			e.Mend = "use a name that its certificate has"
		}
		if errors.As(err, &certificate) {
			// A certificate that has run out is replaced on the server.
			e.Mend, e.permanent = "renew the certificate of the server", false
		}
		return e
	case errors.As(err, &alert) && alert.Op == "remote error":
		return permanent(ErrUnauthorized, w.mendLogin("tls.crt and tls.key"), "the server ended the TLS handshake (%s)", plain(w, alert))
	case errors.Is(err, http.ErrSchemeMismatch):
		return permanent(ErrUntrusted, "offer it over TLS, or begin the address with http:// if it is a repository or a web server",
			"the server does not speak TLS")
	}
	return nil
}

func classifyStatus(w wanted, code int) *Error {
	said := status(code)
	switch code {
	case http.StatusUnauthorized, http.StatusForbidden:
		keys := w.credentials.keys()
		if keys == "" {
			return permanent(ErrUnauthorized, w.mendLogin("username and password, token or .dockerconfigjson"),
				"it needs credentials (%v)", said)
		}
		return permanent(ErrUnauthorized, fmt.Sprintf("look at the keys %s of the Secret %s", keys, w.credentials.secret),
			"the credentials of the Secret %s are refused (%v)", w.credentials.secret, said)
	case http.StatusNotFound, http.StatusGone:
		return passing(ErrNotFound, "publish it, or mend its name in the template", "it is not there (%v)", said)
	case http.StatusProxyAuthRequired:
		return passing(ErrUnavailable, "look at the proxy of the operator", "the proxy refuses (%v)", said)
	default:
		return passing(ErrUnavailable, "", "the server answered with %v", said)
	}
}

// mendLogin says which Secret should have which keys.
func (w wanted) mendLogin(keys string) string {
	if w.credentials.secret == "" {
		return "name a Secret with " + keys + " in secretName"
	}
	return fmt.Sprintf("give the Secret %s the keys %s", w.credentials.secret, keys)
}

// query finds what follows the path of an address in a text.
var query = regexp.MustCompile(`(://[^\s"'?#@]*@|(://[^\s"'?#]*)[?#][^\s"']*)`)

// plain writes an error of a library in one line, without addresses' queries and users, and without credentials.
func plain(w wanted, err error) string {
	var at *url.Error
	for errors.As(err, &at) {
		err = at.Err
	}
	text := query.ReplaceAllStringFunc(err.Error(), func(found string) string {
		if before, _, ok := strings.Cut(found, "?"); ok {
			return before
		}
		return "://"
	})
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, w.credentials.scrub(text))
	const longest = 300
	if runes := []rune(text); len(runes) > longest {
		text = string(runes[:longest]) + "…"
	}
	return text
}
