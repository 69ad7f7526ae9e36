package dockertest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"testing"
	"time"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
)

// validity is how long before now certificates begin to be valid, and how long after it they end.
const validity = time.Hour

// Authority signs the certificates of engines and their clients.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// NewAuthority returns an authority that nobody knows yet.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	cert, key, err := signed(template, nil)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(cert)
	if err != nil {
		t.Fatal(err)
	}
	return &Authority{cert: parsed, key: key, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})}
}

// PEM returns the certificate of the authority.
func (a *Authority) PEM() []byte { return a.pem }

// Client returns what a client of an engine needs to be let in by it, if the engine knows the authority, and to trust it, if it has its
// certificate from the authority.
func (a *Authority) Client(t testing.TB) *docker.TLS {
	t.Helper()
	cert, key, err := a.sign("client", x509.ExtKeyUsageClientAuth)
	if err != nil {
		t.Fatal(err)
	}
	return &docker.TLS{CA: a.pem, Cert: cert, Key: api.Hidden(key)}
}

// sign returns a certificate and its key, in PEM.
func (a *Authority) sign(name string, usage x509.ExtKeyUsage) (cert, key []byte, err error) {
	template := &x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{usage}}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	der, private, err := signed(template, a)
	if err != nil {
		return nil, nil, err
	}
	text, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text}), nil
}

// signed completes a certificate and signs it; without an authority, it signs itself.
func signed(template *x509.Certificate, by *Authority) ([]byte, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		return nil, nil, err
	}
	now := time.Now()
	template.NotBefore, template.NotAfter = now.Add(-validity), now.Add(validity)
	parent, signer := template, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	return der, key, err
}

// ListenTLS starts the engine anew, at a port of this machine too, and returns its address as host:port. There it is called by name,
// which may be an IP address, and lets in the clients of the authority.
func (e *Engine) ListenTLS(ctx context.Context, a *Authority, name string) (address string, err error) {
	cert, key, err := a.sign(name, x509.ExtKeyUsageServerAuth)
	if err != nil {
		return "", fmt.Errorf("make the certificate of %s: %w", e.name, err)
	}
	arguments := []string{"--tlsverify"}
	for flag, text := range map[string][]byte{"tlscacert": a.pem, "tlscert": cert, "tlskey": key} {
		file := e.slot.path(flag + ".pem")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return "", err
		}
		arguments = append(arguments, "--"+flag, file)
	}
	// Nobody else takes a port of this address meanwhile.
	listener, err := net.Listen("tcp", net.JoinHostPort(e.Address(), "0"))
	if err != nil {
		return "", err
	}
	address = listener.Addr().String()
	if err := listener.Close(); err != nil {
		return "", err
	}
	if err := e.shutDown(ctx); err != nil {
		return "", err
	}
	return address, e.Start(ctx, append(arguments, "--host", "tcp://"+address)...)
}
