package gateways

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/operatorkit/operatorkit/informer/natsinformer"
)

// Kind is the kind of the primaries, by which everything that is made for a Gateway names it.
const Kind = "Gateway"

// The buckets.
const (
	GatewaysBucket     = "gateways"
	CertificatesBucket = "certificates"
	RoutesBucket       = "routes"
	EventsBucket       = "events"
	LeasesBucket       = "leases"
)

// Gateway is the primary: it leads hosts to a backend. Its name is that of its ConfigMap too.
type Gateway struct {
	natsinformer.Meta `json:"metadata"`
	// Hosts are the names under which it serves. A host belongs to one gateway.
	Hosts []string `json:"hosts"`
	// Backend is the address to which it leads.
	Backend string `json:"backend"`
	// Certificate is the name of the Certificate that it serves with.
	Certificate string `json:"certificate"`
}

// Route is a secondary: it leads one host, which is its name, to a backend.
type Route struct {
	natsinformer.Meta `json:"metadata"`
	Backend           string `json:"backend"`
}

// Certificate is a tertiary: somebody else writes it, and the controller reads it.
type Certificate struct {
	natsinformer.Meta `json:"metadata"`
	// PEM is an X.509 certificate.
	PEM string `json:"pem"`
}

// Inspect returns the SHA-256 fingerprint of the certificate, and when it expires.
func (c *Certificate) Inspect() (fingerprint string, expires time.Time, err error) {
	block, _ := pem.Decode([]byte(c.PEM))
	if block == nil {
		return "", time.Time{}, fmt.Errorf("certificate %s is not in PEM", c.Name)
	}
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("certificate %s: %w", c.Name, err)
	}
	sum := sha256.Sum256(parsed.Raw)
	return hex.EncodeToString(sum[:]), parsed.NotAfter.UTC(), nil
}

// markerTTL is how long the markers of what was purged stay, so that every watch comes by, and none for ever.
const markerTTL = time.Hour

// CreateBuckets makes the buckets that do not exist yet, each on so many NATS servers: 1, 3 or 5. What three servers keep is not lost with
// one of them, and goes on being written meanwhile. With History, a gateway that is deleted while the controller is
// down is cleaned up after with its last known state, and whoever watches the routes sees what was put right.
func CreateBuckets(ctx context.Context, js jetstream.JetStream, replicas int) error {
	for _, bucket := range []jetstream.KeyValueConfig{
		{Bucket: GatewaysBucket, History: 2, LimitMarkerTTL: markerTTL},
		{Bucket: CertificatesBucket, LimitMarkerTTL: markerTTL},
		{Bucket: RoutesBucket, History: 2, LimitMarkerTTL: markerTTL},
		{Bucket: EventsBucket, TTL: time.Hour},
		{Bucket: LeasesBucket},
	} {
		bucket.Replicas = replicas
		_, err := js.CreateKeyValue(ctx, bucket)
		if err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
			return fmt.Errorf("create bucket %s: %w", bucket.Bucket, err)
		}
	}
	return nil
}
