package fetch

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
)

// The keys of a Secret with credentials.
const (
	keyToken   = "token"
	keyCA      = "ca.crt"
	keyKeyring = "keyring"
)

var knownKeys = []string{
	corev1.BasicAuthUsernameKey, corev1.BasicAuthPasswordKey, keyToken, corev1.DockerConfigJsonKey,
	corev1.TLSCertKey, corev1.TLSPrivateKeyKey, keyCA, keyKeyring,
}

// Credentials are the logins, certificates and keys of a Secret. The zero value is none. They are immutable and safe for
// concurrent use, and print as the name of their Secret only.
type Credentials struct {
	// secret is "namespace/name".
	secret      string
	data        map[string][]byte
	docker      credentials.Store
	certificate *tls.Certificate
	roots       *x509.CertPool
	// fingerprint stands for the content.
	fingerprint string
}

// CredentialsFromSecret reads the credentials of a Secret, whose keys the documentation of the package lists. Keys that
// are not listed are ignored. An error is an *Error that names the Secret and the key, and is permanent.
func CredentialsFromSecret(secret *corev1.Secret) (Credentials, error) {
	c := Credentials{secret: secret.Namespace + "/" + secret.Name, data: map[string][]byte{}}
	for _, key := range knownKeys {
		if len(secret.Data[key]) > 0 {
			c.data[key] = slices.Clone(secret.Data[key])
		}
	}
	if err := c.read(); err != nil {
		err.What = "with Secret " + c.secret
		return Credentials{}, err
	}
	content, err := json.Marshal(c.data)
	if err != nil {
		return Credentials{}, fmt.Errorf("encode the keys of Secret %s: %w", c.secret, err)
	}
	sum := sha256.Sum256(content)
	c.fingerprint = hex.EncodeToString(sum[:])
	return c, nil
}

// read parses and checks the data.
func (c *Credentials) read() *Error {
	invalid := func(mend, reason string) *Error { return permanent(ErrInvalid, mend, "%s", reason) }
	if len(c.data) == 0 {
		return invalid("give it at least one of "+strings.Join(knownKeys, ", "), "the Secret has none of the keys that are known")
	}
	logins := 0
	for _, key := range []string{corev1.BasicAuthUsernameKey, keyToken, corev1.DockerConfigJsonKey} {
		if c.has(key) {
			logins++
		}
	}
	if logins > 1 {
		return invalid("keep one of them", "the Secret has more than one of the keys username, token and .dockerconfigjson")
	}
	if c.has(corev1.BasicAuthUsernameKey) != c.has(corev1.BasicAuthPasswordKey) {
		return invalid("set both keys", "the Secret has only one of the keys username and password")
	}
	if c.has(corev1.TLSCertKey) != c.has(corev1.TLSPrivateKeyKey) {
		return invalid("set both keys", "the Secret has only one of the keys tls.crt and tls.key")
	}
	if c.has(corev1.TLSCertKey) {
		pair, err := tls.X509KeyPair(c.data[corev1.TLSCertKey], c.data[corev1.TLSPrivateKeyKey])
		if err != nil {
			return invalid("give it a certificate and its key as PEM", "the keys tls.crt and tls.key are no certificate with its key")
		}
		c.certificate = &pair
	}
	if c.has(keyCA) {
		roots, err := x509.SystemCertPool()
		if err != nil {
			roots = x509.NewCertPool()
		}
		if !roots.AppendCertsFromPEM(c.data[keyCA]) {
			return invalid("give it certificates as PEM", "the key ca.crt has no certificate")
		}
		c.roots = roots
	}
	if c.has(corev1.DockerConfigJsonKey) {
		store, err := credentials.NewMemoryStoreFromDockerConfig(c.data[corev1.DockerConfigJsonKey])
		if err != nil {
			return invalid("give it what `docker login` writes into config.json", "the key .dockerconfigjson can't be read")
		}
		c.docker = store
	}
	return nil
}

func (c Credentials) has(key string) bool { return len(c.data[key]) > 0 }

// String names the Secret and nothing that is in it.
func (c Credentials) String() string {
	if c.secret == "" {
		return "no credentials"
	}
	return "credentials of Secret " + c.secret
}

// GoString does the same for %#v.
func (c Credentials) GoString() string { return c.String() }

// MarshalText does the same for encoders.
func (c Credentials) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// LogValue does the same for slog.
func (c Credentials) LogValue() slog.Value { return slog.StringValue(c.String()) }

// keys lists the keys of the Secret that log in.
func (c Credentials) keys() string {
	logins := []string{corev1.BasicAuthUsernameKey, corev1.BasicAuthPasswordKey, keyToken, corev1.DockerConfigJsonKey, corev1.TLSCertKey, corev1.TLSPrivateKeyKey}
	return strings.Join(slices.DeleteFunc(logins, func(key string) bool { return !c.has(key) }), ", ")
}

// authorize adds a login to a request of a chart repository or web server.
func (c Credentials) authorize(req *http.Request) {
	switch {
	case c.has(corev1.BasicAuthUsernameKey):
		req.SetBasicAuth(string(c.data[corev1.BasicAuthUsernameKey]), string(c.data[corev1.BasicAuthPasswordKey]))
	case c.has(keyToken):
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(c.data[keyToken])))
	}
}

// registry returns the login of an OCI registry.
func (c Credentials) registry(ctx context.Context, host string) (auth.Credential, error) {
	switch {
	case c.has(corev1.BasicAuthUsernameKey):
		return auth.Credential{
			Username: string(c.data[corev1.BasicAuthUsernameKey]),
			Password: string(c.data[corev1.BasicAuthPasswordKey]),
		}, nil
	case c.has(keyToken):
		return auth.Credential{AccessToken: strings.TrimSpace(string(c.data[keyToken]))}, nil
	case c.docker == nil:
		return auth.EmptyCredential, nil
	}
	names := []string{host}
	if host == "registry-1.docker.io" {
		names = append(names, "index.docker.io", "docker.io")
	}
	for _, name := range names {
		login, err := c.docker.Get(ctx, name)
		if err != nil || login != auth.EmptyCredential {
			return login, err
		}
	}
	return auth.EmptyCredential, nil
}

// scrub removes the values of the credentials from a text.
func (c Credentials) scrub(text string) string {
	for _, key := range slices.Sorted(maps.Keys(c.data)) {
		value := strings.TrimSpace(string(c.data[key]))
		if key != corev1.BasicAuthUsernameKey && len(value) > 3 {
			text = strings.ReplaceAll(text, value, "…")
		}
	}
	return text
}

// keyring returns credentials that log in nowhere, and verify what these verify.
func (c Credentials) keyring() Credentials {
	kept := Credentials{secret: c.secret, data: map[string][]byte{}, roots: c.roots, fingerprint: c.fingerprint}
	if c.has(keyKeyring) {
		kept.data[keyKeyring] = c.data[keyKeyring]
	}
	return kept
}
