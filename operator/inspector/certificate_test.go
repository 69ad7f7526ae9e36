package inspector_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/inspector"
	"github.com/operatorkit/operatorkit/operator/logging"
)

// writeCertificate writes a new certificate and its key to a folder, and returns the files and the certificate.
func writeCertificate(t testing.TB, folder string) (certFile, keyFile string, cert []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: serial, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	if cert, err = x509.CreateCertificate(rand.Reader, template, template, key.Public(), key); err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: cert}, keyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile, cert
}

func TestCertificateIsReadAgainWhenItsFilesChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		certFile, keyFile, first := writeCertificate(t, folder)
		var log bytes.Buffer
		logger, err := logging.New(logging.Config{Writer: &log, Format: logging.FormatText, Level: logging.LevelInfo})
		if err != nil {
			t.Fatal(err)
		}
		i, err := inspector.New(inspector.Config{Name: "o", Logger: logger, CertFile: certFile, KeyFile: keyFile})
		if err != nil {
			t.Fatal(err)
		}
		shows := func(want []byte) {
			t.Helper()
			got, err := i.TLSConfig().GetCertificate(nil)
			if err != nil || !bytes.Equal(got.Certificate[0], want) {
				t.Errorf("another certificate is shown: %v", err)
			}
		}
		shows(first)
		_, _, second := writeCertificate(t, folder)
		time.Sleep(10 * time.Second)
		shows(second)
		if err := os.WriteFile(keyFile, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		shows(second)
		has(t, log.String(), "the certificate stays as it was", keyFile)
		_, _, third := writeCertificate(t, folder)
		time.Sleep(10 * time.Second)
		shows(third)
	})
}

func TestBeyondLoopbackThereIsTLSOrNothing(t *testing.T) {
	certFile, keyFile, _ := writeCertificate(t, t.TempDir())
	api := &rest.Config{Host: "http://127.0.0.1:1"}
	for name, test := range map[string]struct {
		config inspector.Config
		fault  string
	}{
		"none":                   {inspector.Config{Address: ":8082", RESTConfig: api}, `Address ":8082" is not on loopback, which takes a CertFile and a KeyFile`},
		"a certificate":          {inspector.Config{Address: ":8082", RESTConfig: api, CertFile: certFile, KeyFile: keyFile}, ""},
		"one on loopback":        {inspector.Config{CertFile: certFile, KeyFile: keyFile}, ""},
		"no key":                 {inspector.Config{CertFile: certFile}, "CertFile and KeyFile must be given together"},
		"no file":                {inspector.Config{CertFile: certFile + "x", KeyFile: keyFile}, "no such file"},
		"the key of another one": {inspector.Config{CertFile: certFile, KeyFile: certFile}, "use the certificate in " + certFile + " with the key in"},
	} {
		test.config.Name, test.config.Logger = "o", quiet(t)
		i, err := inspector.New(test.config)
		switch {
		case test.fault == "" && (err != nil || i.TLSConfig() == nil):
			t.Errorf("%s: %v", name, err)
		case test.fault != "" && !framework.IsInvalidConfig(err):
			t.Errorf("%s: IsInvalidConfig(%v) is false", name, err)
		case test.fault != "":
			has(t, err.Error(), test.fault)
		}
	}
	if i, err := inspector.New(inspector.Config{Name: "o", Logger: quiet(t)}); err != nil || i.TLSConfig() != nil {
		t.Errorf("on loopback without a certificate there is TLS: %v", err)
	}
}
