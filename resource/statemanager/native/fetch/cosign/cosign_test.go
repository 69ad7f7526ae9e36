package cosign_test

import (
	"archive/tar"
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/payload"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch/cosign"
)

// signer signs with a key.
type signer struct {
	signature.Signer
	public string
}

func newSigner(t *testing.T, key crypto.Signer) signer {
	t.Helper()
	s, err := signature.LoadSigner(key, crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	public, err := cryptoutils.MarshalPublicKeyToPEM(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return signer{s, string(public)}
}

func keyOf(t *testing.T) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// push pushes an image of one layer for each text, and returns its digest.
func push(t *testing.T, to string, kind types.MediaType, annotations map[string]string, texts ...[]byte) string {
	t.Helper()
	image := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	var layers []mutate.Addendum
	for _, text := range texts {
		layers = append(layers, mutate.Addendum{Layer: static.NewLayer(text, kind), Annotations: annotations, MediaType: kind})
	}
	image, err := mutate.Append(image, layers...)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(to)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, image); err != nil {
		t.Fatal(err)
	}
	var digest v1.Hash
	if digest, err = image.Digest(); err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

// sign pushes a signature where cosign has it, as its specification says.
func (s signer) sign(t *testing.T, repository, digest string, claim payload.SimpleContainerImage) {
	t.Helper()
	text, err := json.Marshal(claim)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := s.SignMessage(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	push(t, repository+":"+strings.Replace(digest, ":", "-", 1)+".sig", "application/vnd.dev.cosign.simplesigning.v1+json",
		map[string]string{"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(signed)}, text)
}

func claimOf(digest string) payload.SimpleContainerImage {
	return payload.SimpleContainerImage{Critical: payload.Critical{
		Identity: payload.Identity{DockerReference: "example.com/files"}, Image: payload.Image{DockerManifestDigest: digest}, Type: payload.CosignSignatureType,
	}}
}

func archive(t *testing.T, text string) []byte {
	t.Helper()
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	err := w.WriteHeader(&tar.Header{Name: "a.yaml", Typeflag: tar.TypeReg, Size: int64(len(text)), Mode: 0o644})
	if _, write := w.Write([]byte(text)); errors.Join(err, write, w.Close()) != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

func TestWhatIsFetchedHasToBeSignedByOneOfTheKeys(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ann, bob, carl, dora := newSigner(t, keyOf(t)), newSigner(t, keyOf(t)), newSigner(t, rsaKey), newSigner(t, edKey)
	other := claimOf("sha256:" + strings.Repeat("1", 64))
	foreign := func(digest string) payload.SimpleContainerImage {
		c := claimOf(digest)
		c.Critical.Type = "atomic container signature"
		return c
	}
	for name, row := range map[string]struct {
		sign func(repository, digest string)
		keys []string
		want error
		says string
	}{
		"ECDSA":            {func(r, d string) { ann.sign(t, r, d, claimOf(d)) }, []string{ann.public}, nil, ""},
		"RSA":              {func(r, d string) { carl.sign(t, r, d, claimOf(d)) }, []string{carl.public}, nil, ""},
		"Ed25519":          {func(r, d string) { dora.sign(t, r, d, claimOf(d)) }, []string{dora.public}, nil, ""},
		"one of two keys":  {func(r, d string) { ann.sign(t, r, d, claimOf(d)) }, []string{bob.public, ann.public}, nil, ""},
		"another key":      {func(r, d string) { bob.sign(t, r, d, claimOf(d)) }, []string{ann.public}, fetch.ErrProvenance, "by another key"},
		"another artifact": {func(r, d string) { ann.sign(t, r, d, other) }, []string{ann.public}, fetch.ErrProvenance, "it is one of sha256:1111"},
		"something else":   {func(r, d string) { ann.sign(t, r, d, foreign(d)) }, []string{ann.public}, fetch.ErrProvenance, "of the type"},
		"not signed":       {func(string, string) {}, []string{ann.public}, fetch.ErrProvenance, "there is no signature of sha256:"},
		"no key":           {func(r, d string) { ann.sign(t, r, d, claimOf(d)) }, []string{"hello"}, fetch.ErrInvalid, "can't be read"},
		"nobody asks":      {func(string, string) {}, nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			repository := host + "/" + strings.ToLower(strings.ReplaceAll(name, " ", "-"))
			digest := push(t, repository+":v1", "application/vnd.cncf.flux.content.v1.tar", nil, archive(t, name))
			row.sign(repository, digest)
			fetcher, err := fetch.New(fetch.Config{Folder: t.TempDir(), Cosign: cosign.New()})
			if err != nil {
				t.Fatal(err)
			}
			from := v1alpha1.Artifact{URL: "oci://" + repository + ":v1"}
			if _, err := fetcher.Files(t.Context(), from, fetch.Credentials{}); err != nil {
				t.Fatalf("without verify: %v", err)
			}
			if row.keys != nil {
				from.Verify = &v1alpha1.Verification{CosignKeys: row.keys} // What is in the cache was verified by nobody.
			}
			_, err = fetcher.Files(t.Context(), from, fetch.Credentials{})
			if !errors.Is(err, row.want) || err != nil && !strings.Contains(err.Error(), row.says) {
				t.Errorf("the error is %v, want %v: %s", err, row.want, row.says)
			}
		})
	}

	plain, err := fetch.New(fetch.Config{Folder: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	from := v1alpha1.Artifact{URL: "oci://" + host + "/ecdsa:v1", Verify: &v1alpha1.Verification{CosignKeys: []string{ann.public}}}
	if _, err := plain.Files(t.Context(), from, fetch.Credentials{}); !fetch.Permanent(err) || !strings.Contains(err.Error(), "not wired into this operator") {
		t.Errorf("without cosign: %v", err)
	}
}
