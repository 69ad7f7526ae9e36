package clusteraccess

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// TokenFile returns a Config.OIDCToken of a program that one issuer knows: it reads the token from a file each time, as that of a projected
// service account token, which is replaced before it runs out.
func TokenFile(path string) func(ctx context.Context, issuer string) (string, error) {
	return func(context.Context, string) (string, error) {
		token, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("read the token of the issuer: %w", err)
		}
		return strings.TrimSpace(string(token)), nil
	}
}

// signIn goes around the requests to the cluster of an AccessRequest. To one that was asked for by OIDC it adds a token of the issuer.
func (c *Clusters[D]) signIn(access informer.Key, next http.RoundTripper) http.RoundTripper {
	signed := roundTripper(func(r *http.Request) (*http.Response, error) {
		token, err := c.tokenFor(r.Context(), access)
		if err != nil {
			if r.Body != nil {
				_ = r.Body.Close()
			}
			return nil, err
		}
		if token != "" {
			r = r.Clone(r.Context())
			r.Header.Set("Authorization", "Bearer "+token)
		}
		return next.RoundTrip(r)
	})
	if c.config.WrapTransport == nil {
		return signed
	}
	return c.config.WrapTransport(access, signed)
}

// tokenFor returns the token to use for an access, empty for one whose kubeconfig has its own.
func (c *Clusters[D]) tokenFor(ctx context.Context, access informer.Key) (string, error) {
	obj, exists, err := c.access.Get(access)
	ar, ok := obj.(*v1alpha1.AccessRequest)
	if err != nil || !exists || !ok || ar.Spec.OIDC == nil {
		return "", nil
	}
	if c.config.OIDCToken == nil {
		return "", errors.New("the cluster was asked for by OIDC: set clusteraccess.Config.OIDCToken, which gives tokens of the issuer")
	}
	token, err := c.config.OIDCToken(ctx, ar.Spec.OIDC.Issuer)
	if err == nil && token == "" {
		err = errors.New("there is none")
	}
	if err != nil {
		return "", fmt.Errorf("get a token of the issuer %s: %w", ar.Spec.OIDC.Issuer, err)
	}
	return token, nil
}

// roundTripper is a function that is an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
