package operatortest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity of every certificate. They are made for one control plane on one
// machine: nobody should have to think of renewing them.
const validity = 10 * 365 * 24 * time.Hour

// authority is a certificate authority: it issues certificates for one purpose.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
	certPEM     []byte
}

// keyPair is a certificate and its key, both PEM.
type keyPair struct {
	cert, key []byte
}

// loadAuthority reads <name>.crt and <name>.key from dir.
func loadAuthority(dir, name string) (*authority, error) {
	certPEM, err := os.ReadFile(filepath.Join(dir, name+".crt"))
	if err != nil {
		return nil, fmt.Errorf("read authority %s: %w", name, err)
	}
	keyPEM, err := os.ReadFile(filepath.Join(dir, name+".key"))
	if err != nil {
		return nil, fmt.Errorf("read key of authority %s: %w", name, err)
	}
	certBlock, _ := pem.Decode(certPEM)
	keyBlock, _ := pem.Decode(keyPEM)
	if certBlock == nil || keyBlock == nil {
		return nil, fmt.Errorf("read authority %s in %s: not PEM", name, dir)
	}
	certificate, err := x509.ParseCertificate(certBlock.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse authority %s in %s: %w", name, dir, err)
	}
	key, err := x509.ParseECPrivateKey(keyBlock.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse key of authority %s in %s: %w", name, dir, err)
	}
	return &authority{certificate: certificate, key: key, certPEM: certPEM}, nil
}

// loadOrCreateAuthority makes an authority and keeps it in dir, where the next
// instance with the same data folder finds it.
func loadOrCreateAuthority(dir, name string) (*authority, error) {
	a, err := loadAuthority(dir, name)
	if !errors.Is(err, fs.ErrNotExist) {
		return a, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "operatortest " + name},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	pair, err := sign(template, nil)
	if err != nil {
		return nil, fmt.Errorf("create authority %s: %w", name, err)
	}
	if err := pair.write(dir, name); err != nil {
		return nil, err
	}
	return loadAuthority(dir, name)
}

// issueServer issues a certificate for a server on loopback.
func (a *authority) issueServer(name string, dnsNames ...string) (keyPair, error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    append([]string{"localhost"}, dnsNames...),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	})
}

// issueClient issues a certificate for a client: Kubernetes takes the common
// name for the user and the organizations for the groups.
func (a *authority) issueClient(user string, groups ...string) (keyPair, error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func (a *authority) issue(template *x509.Certificate) (keyPair, error) {
	pair, err := sign(template, a)
	if err != nil {
		return keyPair{}, fmt.Errorf("issue certificate for %s: %w", template.Subject.CommonName, err)
	}
	return pair, nil
}

// sign makes a key and its certificate, signed by issuer or, when that is nil,
// by itself.
func sign(template *x509.Certificate, issuer *authority) (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, err
	}
	template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return keyPair{}, err
	}
	template.NotBefore = time.Now().Add(-time.Hour) // clocks of the past hour are right enough
	template.NotAfter = template.NotBefore.Add(validity)

	parent, signer := template, crypto.Signer(key)
	if issuer != nil {
		parent, signer = issuer.certificate, issuer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return keyPair{}, err
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return keyPair{}, err
	}
	return keyPair{
		cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:  keyPEM,
	}, nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// write keeps the pair as <name>.crt and <name>.key in dir.
func (p keyPair) write(dir, name string) error {
	if err := os.WriteFile(filepath.Join(dir, name+".crt"), p.cert, 0o600); err != nil {
		return fmt.Errorf("write certificate %s: %w", name, err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".key"), p.key, 0o600); err != nil {
		return fmt.Errorf("write key of certificate %s: %w", name, err)
	}
	return nil
}
