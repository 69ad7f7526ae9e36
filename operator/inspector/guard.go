package inspector

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
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

// guard lets only those pass who may.
func (i *Inspector) guard(next http.Handler) http.Handler {
	sameOrigin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range securityHeaders {
			w.Header().Set(name, value)
		}
		if err := sameOrigin.Check(r); err != nil {
			refuse(w, http.StatusForbidden, "the request comes from another site")
			return
		}
		status, reason := i.admit(r)
		if status != http.StatusOK {
			refuse(w, status, reason)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// admit tells whether the request may pass, or the status and the reason of the refusal.
func (i *Inspector) admit(r *http.Request) (status int, reason string) {
	if i.config.Authorizer == nil {
		return admitLocal(r)
	}
	verb := VerbGet
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		verb = VerbPlan
	}
	err := i.config.Authorizer.Authorize(r, verb)
	switch {
	case err == nil:
		return http.StatusOK, ""
	case errors.Is(err, ErrUnauthenticated):
		return http.StatusUnauthorized, err.Error() + "; send one that the cluster accepts, or use kubectl port-forward with an inspector on loopback"
	case errors.Is(err, ErrForbidden):
		return http.StatusForbidden, err.Error()
	}
	i.log("error", "can't tell who may look", "error", err.Error())
	return http.StatusInternalServerError, "can't tell whether you may look: the log of the operator says why"
}

// admitLocal lets requests pass that came in on loopback and were meant to. The name of the host is looked at because a
// page in a browser on this machine can have its own name resolved to a loopback address (DNS rebinding), and would be
// taken for ours then.
func admitLocal(r *http.Request) (status int, reason string) {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil {
		return http.StatusForbidden, "without an Authorizer, the inspector answers on loopback only"
	}
	address, err := netip.ParseAddrPort(local.String())
	if err != nil || !address.Addr().Unmap().IsLoopback() {
		return http.StatusForbidden, "without an Authorizer, the inspector answers on loopback only"
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(r.Host); err == nil {
		host = name
	}
	if !loopbackHost(trimBrackets(host)) {
		return http.StatusForbidden, "the inspector answers to the names of loopback only, such as localhost"
	}
	return http.StatusOK, ""
}

func trimBrackets(host string) string {
	if n := len(host); n > 2 && host[0] == '[' && host[n-1] == ']' {
		return host[1 : n-1]
	}
	return host
}

func refuse(w http.ResponseWriter, status int, reason string) {
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="inspector"`)
	}
	http.Error(w, reason, status)
}

func (i *Inspector) log(level, message string, fields ...any) {
	i.config.Logger.Log(append([]any{"level", level, "message", message, "inspector", i.config.Name}, fields...)...)
}
