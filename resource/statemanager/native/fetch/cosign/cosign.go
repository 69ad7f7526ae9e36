// Package cosign checks signatures that cosign has made with a key. It is for fetch.Config.Cosign, and links sigstore's library:
//
//	fetcher, err := fetch.New(fetch.Config{Cosign: cosign.New()})
//
// Keys are ECDSA, RSA (PKCS #1 v1.5) and Ed25519 ones, with SHA-256. Signatures without a key of one's own, by certificates and a transparency
// log, are not checked, nor is a log asked for those with one.
package cosign

import (
	"bytes"
	"crypto"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/payload"

	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch"
)

// Cosign is a fetch.Cosign. It is safe for concurrent use.
type Cosign struct{}

var _ fetch.Cosign = Cosign{}

// New returns a Cosign.
func New() Cosign { return Cosign{} }

func verifier(key string) (signature.Verifier, error) {
	public, err := cryptoutils.UnmarshalPEMToPublicKey([]byte(key))
	if err != nil {
		return nil, err
	}
	return signature.LoadVerifier(public, crypto.SHA256)
}

// Usable implements fetch.Cosign.
func (Cosign) Usable(key string) error {
	_, err := verifier(key)
	return err
}

// Check implements fetch.Cosign. A signature of another digest, or of something that is no container image in cosign's words, is not good.
func (Cosign) Check(key, digest string, signed, sig []byte) error {
	v, err := verifier(key)
	if err != nil {
		return err
	}
	if err := v.VerifySignature(bytes.NewReader(sig), bytes.NewReader(signed)); err != nil {
		return errors.New("it is by another key")
	}
	var claim payload.SimpleContainerImage
	if err := json.Unmarshal(signed, &claim); err != nil {
		return errors.New("what is signed can't be read")
	}
	if claim.Critical.Type != payload.CosignSignatureType {
		return fmt.Errorf("it is one of the type %q", claim.Critical.Type)
	}
	if claim.Critical.Image.DockerManifestDigest != digest {
		return fmt.Errorf("it is one of %s", claim.Critical.Image.DockerManifestDigest)
	}
	return nil
}
