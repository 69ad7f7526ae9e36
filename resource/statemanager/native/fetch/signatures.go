package fetch

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// Cosign checks signatures as cosign makes them with keys. It is called by many goroutines.
type Cosign interface {
	// Check tells whether a key, as PEM, has made a signature of a payload that is about a digest. The error says in a few words why not.
	Check(key, digest string, payload, signature []byte) error
	// Usable tells whether a key can be read.
	Usable(key string) error
}

const (
	// cosignPayload and cosignSignature are how cosign keeps its signatures:
	// https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md
	cosignPayload   = "application/vnd.dev.cosign.simplesigning.v1+json"
	cosignSignature = "dev.cosignproject.cosign/signature"
	// maxPayload bounds what is signed, in bytes: a name and a digest.
	maxPayload = 64 << 10
	// maxSignatures bounds how many of them are looked at.
	maxSignatures = 32
)

// keysOf returns the keys of which one has to have signed something.
func keysOf(v *v1alpha1.Verification) []string {
	if v == nil {
		return nil
	}
	return v.CosignKeys
}

// signed looks for a signature of a manifest by one of the keys that are wanted.
func (f *Fetcher) signed(ctx context.Context, w wanted, repository *remote.Repository, manifest string) error {
	if len(w.verify) == 0 {
		return nil
	}
	if f.cosign == nil {
		return permanent(ErrProvenance, "take verify out, or set Cosign in the operator's configuration of its fetcher",
			"cosign is not wired into this operator")
	}
	for _, key := range w.verify {
		if err := f.cosign.Usable(key); err != nil {
			return permanent(ErrInvalid, "give verify what `cosign public-key` prints", "a key in cosignKeys can't be read (%s)", plain(w, err))
		}
	}
	const mend = "sign it with `cosign sign --key` (--new-bundle-format=false since version 3), or name the key in verify"
	tag := strings.Replace(manifest, ":", "-", 1) + ".sig"
	descriptor, err := repository.Resolve(ctx, tag)
	if errors.Is(err, errdef.ErrNotFound) {
		return passing(ErrProvenance, mend, "there is no signature of %s", manifest)
	}
	if err != nil {
		return err
	}
	signatures, err := fetchManifest(ctx, repository, descriptor)
	if err != nil {
		return err
	}
	reason := "there is none that cosign made"
	for _, layer := range signatures.Layers[:min(len(signatures.Layers), maxSignatures)] {
		signature, err := base64.StdEncoding.DecodeString(layer.Annotations[cosignSignature])
		if layer.MediaType != cosignPayload || err != nil || len(signature) == 0 || layer.Size > maxPayload {
			continue
		}
		payload, err := fetchPayload(ctx, repository, layer)
		if err != nil {
			return err
		}
		for _, key := range w.verify {
			if err = f.cosign.Check(key, manifest, payload, signature); err == nil {
				return nil
			}
			reason = plain(w, err)
		}
	}
	return passing(ErrProvenance, mend, "no signature of %s is by a key in cosignKeys (%s)", manifest, reason)
}

func fetchPayload(ctx context.Context, repository *remote.Repository, d ocispec.Descriptor) ([]byte, error) {
	reader, err := repository.Blobs().Fetch(ctx, d)
	if err != nil {
		return nil, err
	}
	defer func() { _ = reader.Close() }()
	return content.ReadAll(reader, d)
}
