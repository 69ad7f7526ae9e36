package inspector

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// securityHeaders are on every answer. Nothing is loaded from elsewhere, nothing inline runs or is styled, no other page may
// show this one in a frame, and no browser keeps a copy.
var securityHeaders = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	"X-Content-Type-Options":       "nosniff",
	"Referrer-Policy":              "no-referrer",
	"X-Frame-Options":              "DENY",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Cache-Control":                "no-store",
}

// guard lets only those pass who may, once all that they send has come.
func (i *Inspector) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range securityHeaders {
			w.Header().Set(name, value)
		}
		if fromElsewhere(r) {
			refuse(w, http.StatusForbidden, "the request comes from another site")
			return
		}
		status, reason := i.admit(r)
		if status != http.StatusOK {
			refuse(w, status, reason)
			return
		}
		if status, err := receive(w, r); err != nil {
			refuse(w, status, err.Error())
			return
		}
		next.ServeHTTP(w, r)
	})
}

// fromElsewhere tells whether another site has a browser make the request. A link that somebody follows is not such: what is
// opened by it no other site can see.
func fromElsewhere(r *http.Request) bool {
	follows := r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-User") == "?1" &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	if follows {
		return false
	}
	// The library lets all methods pass by which nothing is changed. Here looking counts, too.
	checked := r.WithContext(r.Context())
	checked.Method = http.MethodPost
	return http.NewCrossOriginProtection().Check(checked) != nil
}

// receive reads the body of a request and its form, so that nothing is to come any more while the
// answer is made, however long that takes. The status is that of the refusal, with an error.
func receive(w http.ResponseWriter, r *http.Request) (status int, err error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxForm))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return http.StatusRequestEntityTooLarge, fmt.Errorf("the request has more than %d bytes", tooLarge.Limit)
	case err != nil:
		return http.StatusBadRequest, fmt.Errorf("read the request: %w", err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if err := r.ParseForm(); err != nil {
		return http.StatusBadRequest, fmt.Errorf("read the form: %w", err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body)) // for another replica
	// Where there are no deadlines, none is in the way.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	return http.StatusOK, nil
}

// takeLonger lets the answer to a request take that much longer than the server gives to others.
func takeLonger(w http.ResponseWriter, r *http.Request, d time.Duration) {
	server, _ := r.Context().Value(http.ServerContextKey).(*http.Server)
	if server == nil || server.WriteTimeout <= 0 {
		return
	}
	// Where there are no deadlines, none is in the way.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(d + server.WriteTimeout))
}

// admit tells whether the request may pass, or the status and the reason of the refusal.
func (i *Inspector) admit(r *http.Request) (status int, reason string) {
	if i.config.Authorizer == nil {
		return admitLocal(r)
	}
	verb := verbGet
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		verb = verbPlan
	}
	status, reason = authorize(i.config.Authorizer, r, verb, func(err error) {
		i.log("can't tell who may look", "error", err.Error())
	})
	if status == http.StatusUnauthorized {
		reason += "; send one that the cluster accepts, or use kubectl port-forward with an inspector on loopback"
	}
	return status, reason
}

// admitLocal lets requests pass that came in on loopback and were meant to. The name of the host is looked at because a
// page in a browser on this machine can have its own name resolved to a loopback address (DNS rebinding), and would be
// taken for ours then.
func admitLocal(r *http.Request) (status int, reason string) {
	address, err := netip.ParseAddrPort(fmt.Sprint(r.Context().Value(http.LocalAddrContextKey)))
	if err != nil || !address.Addr().Unmap().IsLoopback() {
		return http.StatusForbidden, "without an Authorizer, the inspector answers on loopback only"
	}
	if !loopbackHost((&url.URL{Host: r.Host}).Hostname()) {
		return http.StatusForbidden, "the inspector answers to the names of loopback only, such as localhost"
	}
	return http.StatusOK, ""
}

func refuse(w http.ResponseWriter, status int, reason string) {
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="inspector"`)
	}
	http.Error(w, reason, status)
}

// log tells of an error.
func (i *Inspector) log(message string, fields ...any) {
	i.config.Logger.Log(append([]any{"level", "error", "message", message, "inspector", i.config.Name}, fields...)...)
}
