// Package selfsigned makes certificates for the demo and the tests of the example.
package selfsigned

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"

	gateways "github.com/operatorkit/operatorkit/examples/nats-controller"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
)

// New returns a certificate of that name, with a new key and 90 days to live.
func New(name string) (*gateways.Certificate, error) {
	certificate := &gateways.Certificate{Meta: natsinformer.Meta{Name: name}}
	return certificate, Renew(certificate)
}

// Renew puts a new certificate in the place of the one that is there.
func Renew(certificate *gateways.Certificate) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: certificate.Name},
		NotBefore: now, NotAfter: now.AddDate(0, 0, 90),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return fmt.Errorf("make a certificate: %w", err)
	}
	certificate.PEM = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return nil
}
