package fetch_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch"
)

// certificate makes a self-signed certificate, valid from now for some time, and returns it with its key as PEM.
func certificate(t *testing.T, valid time.Duration, names ...string) (tls.Certificate, string, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(valid),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
		DNSNames: names, IPAddresses: []net.IP{},
	}
	if len(names) == 0 {
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	crt := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	pemKey := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
	pair, err := tls.X509KeyPair(crt, pemKey)
	if err != nil {
		t.Fatal(err)
	}
	return pair, string(crt), string(pemKey)
}

func TestCertificateOfTheServer(t *testing.T) {
	charts := repository(map[string][]byte{"app-1.0.0.tgz": chartOf(t, "app", "1.0.0")})
	serveWith := func(pair tls.Certificate) *server {
		return start(t, charts, func(s *httptest.Server) {
			s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
			s.StartTLS()
		})
	}
	good, goodCA, _ := certificate(t, time.Hour)
	expired, expiredCA, _ := certificate(t, -time.Hour)
	named, namedCA, _ := certificate(t, time.Hour, "charts.example.com")
	for name, test := range map[string]struct {
		pair      tls.Certificate
		ca        string
		permanent bool
		says      string
	}{
		"unknown":      {good, namedCA, true, "put the certificate of its authority into the key ca.crt"},
		"expired":      {expired, expiredCA, false, "renew the certificate"},
		"another name": {named, namedCA, true, "use a name that its certificate has"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveWith(test.pair)
			for _, address := range []string{s.URL, oci(s)} {
				_, err := newFetcher(t, fetch.Config{}).Chart(t.Context(), chart(address), secret(t, map[string]string{"ca.crt": test.ca}))
				fails(t, err, fetch.ErrUntrusted, test.permanent, test.says, "x509")
			}
		})
	}
	if _, err := newFetcher(t, fetch.Config{}).Chart(t.Context(), chart(serveWith(good).URL), secret(t, map[string]string{"ca.crt": goodCA})); err != nil {
		t.Error(err)
	}
}

func TestClientCertificate(t *testing.T) {
	pair, crt, key := certificate(t, time.Hour)
	charts := repository(map[string][]byte{"app-1.0.0.tgz": chartOf(t, "app", "1.0.0")})
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM([]byte(crt))
	asking := func(need tls.ClientAuthType, handler http.Handler) *server {
		return start(t, handler, func(s *httptest.Server) {
			// With TLS 1.3 a client may be told only after it has sent its request, and miss it.
			s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: need, ClientCAs: trusted, MaxVersion: tls.VersionTLS12}
			s.StartTLS()
		})
	}
	s := asking(tls.RequireAndVerifyClientCert, charts)
	with := secret(t, map[string]string{"ca.crt": crt, "tls.crt": crt, "tls.key": key})
	if _, err := newFetcher(t, fetch.Config{}).Chart(t.Context(), chart(s.URL), with); err != nil {
		t.Fatal(err)
	}
	_, err := newFetcher(t, fetch.Config{}).Chart(t.Context(), chart(s.URL), secret(t, map[string]string{"ca.crt": crt}))
	fails(t, err, fetch.ErrUnauthorized, true, "give the Secret shop/login the keys tls.crt and tls.key")

	var shown atomic.Int32
	elsewhere := asking(tls.RequestClientCert, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown.Add(int32(len(r.TLS.PeerCertificates)))
		charts.ServeHTTP(w, r)
	}))
	s.become(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusFound)
	}))
	if _, err := newFetcher(t, fetch.Config{}).Chart(t.Context(), chart(s.URL), with); err != nil {
		t.Fatal(err)
	}
	if shown.Load() != 0 || elsewhere.asked("") == 0 {
		t.Errorf("the client certificate was shown %d times in %d requests to another server", shown.Load(), elsewhere.asked(""))
	}
}

func TestNothingGoesFromEncryptedToPlain(t *testing.T) {
	archive := chartOf(t, "app", "1.0.0")
	plain := serve(t, repository(map[string][]byte{"app-1.0.0.tgz": archive}))
	linking := site{"/index.yaml": fmt.Appendf(nil, "entries: {app: [{version: 1.0.0, urls: ['%s/app-1.0.0.tgz']}]}", plain.URL)}
	redirecting := http.RedirectHandler(plain.URL+"/index.yaml", http.StatusFound)
	for name, handler := range map[string]http.Handler{"redirect": redirecting, "link of the index": linking} {
		t.Run(name, func(t *testing.T) {
			s := serveTLS(t, handler)
			for _, address := range []string{s.URL, oci(s)} {
				if address != s.URL && name != "redirect" {
					continue
				}
				_, err := newFetcher(t, fetch.Config{}).Chart(t.Context(), chart(address), secret(t, map[string]string{"ca.crt": s.ca()}))
				fails(t, err, fetch.ErrUntrusted, true, "which is not encrypted", "https://")
			}
		})
	}
	if n := plain.asked(""); n != 0 {
		t.Errorf("the plain server was asked %d times", n)
	}
	_, err := newFetcher(t, fetch.Config{}).Chart(t.Context(), chart(strings.Replace(plain.URL, "http://", "https://", 1)), fetch.Credentials{})
	fails(t, err, fetch.ErrUntrusted, true, "does not speak TLS")
}

func TestRedirectsAreBounded(t *testing.T) {
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path+"/x", http.StatusFound)
	}))
	for _, address := range []string{s.URL, oci(s)} {
		_, err := newFetcher(t, fetch.Config{Limits: fetch.Limits{Redirects: 3}}).Chart(t.Context(), chart(address), fetch.Credentials{})
		fails(t, err, fetch.ErrTooLarge, true, "more than 3 redirects", "Limits.Redirects")
	}
	if n := s.asked("GET"); n != 4 {
		t.Errorf("with three redirects allowed there were %d requests", n)
	}
}
