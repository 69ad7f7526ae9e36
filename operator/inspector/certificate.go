package inspector

import (
	"crypto/tls"
	"fmt"
	"sync"
	"time"
)

// certificatePeriod is how long a certificate is used before its files are looked at again.
const certificatePeriod = 10 * time.Second

// certificate is the certificate of a server, which is read again now and then.
type certificate struct {
	certFile, keyFile string
	// failed is told why a new certificate can't be used.
	failed func(error)

	mu      sync.Mutex
	looked  time.Time
	current *tls.Certificate
}

// look reads the files. Without an error there is a certificate afterwards.
func (c *certificate) look() error {
	c.looked = time.Now()
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("use the certificate in %s with the key in %s: %w", c.certFile, c.keyFile, err)
	}
	c.current = &pair
	return nil
}

// get is for tls.Config.GetCertificate. A new certificate that can't be used, such as one of which only one file has been
// written yet, leaves the one before.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) >= certificatePeriod {
		if err := c.look(); err != nil {
			c.failed(err)
		}
	}
	return c.current, nil
}

// TLSConfig returns how the inspector is to be served, and nil when that is without TLS. It is the caller's.
func (i *Inspector) TLSConfig() *tls.Config {
	if i.certificate == nil {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: i.certificate.get}
}
