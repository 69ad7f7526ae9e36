package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	helm "helm.sh/helm/v4/pkg/registry"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

const (
	// maxManifest bounds a manifest and a page of tags, in bytes; registries allow the former.
	maxManifest = 4 << 20
	// maxPages bounds the pages of tags that are read for an error.
	maxPages = 10
)

// layers are what is fetched of a manifest.
type layers struct {
	archive    ocispec.Descriptor
	provenance *ocispec.Descriptor
	file       string
}

// pickFunc chooses the layers of a manifest.
type pickFunc func(registry.Reference, ocispec.Manifest) (layers, error)

// registryChart gets a chart of an OCI registry.
func (f *Fetcher) registryChart(ctx context.Context, w wanted, from v1alpha1.HelmChart, old record) (record, error) {
	folder := strings.Trim(strings.TrimPrefix(from.Repository, "oci://"), "/")
	// A tag can't have a plus, and Helm writes an underscore.
	tag := strings.ReplaceAll(from.Version, "+", "_")
	return f.registryReference(ctx, w, folder+"/"+from.Chart+":"+tag, chartLayers(w), old)
}

// registryFiles gets an artifact of an OCI registry.
func (f *Fetcher) registryFiles(ctx context.Context, w wanted, from v1alpha1.Artifact, old record) (record, error) {
	return f.registryReference(ctx, w, strings.TrimPrefix(from.URL, "oci://"), fileLayers, old)
}

// registryReference gets what a reference names, like "host/repository:tag". The registry on this machine may speak TLS
// or not.
func (f *Fetcher) registryReference(ctx context.Context, w wanted, text string, pick pickFunc, old record) (record, error) {
	ref, err := registry.ParseReference(text)
	if err != nil {
		return record{}, permanent(ErrInvalid, "mend it in the template", "%q is no reference of an OCI registry", text)
	}
	if ref.Reference == "" && w.digest == "" {
		return record{}, permanent(ErrInvalid, "add :tag to the address, or set the digest", "its address has no tag")
	}
	got, err := f.pull(ctx, w, ref, "https", pick, old)
	if errors.Is(err, http.ErrSchemeMismatch) && loopback(ref.Host()) {
		got, err = f.pull(ctx, w, ref, "http", pick, old)
	}
	return got, err
}

// pull finds out what a reference stands for, and brings it into the cache if that is not the old.
func (f *Fetcher) pull(ctx context.Context, w wanted, ref registry.Reference, scheme string, pick pickFunc, old record) (record, error) {
	repository, done, err := f.repository(w, ref, scheme)
	if err != nil {
		return record{}, err
	}
	defer done()
	descriptor, err := resolve(ctx, w, repository)
	if err != nil {
		return record{}, err
	}
	if old.Digest == descriptor.Digest.String() {
		return old, nil
	}
	if err := f.signed(ctx, w, repository, descriptor.Digest.String()); err != nil {
		return record{}, err
	}
	manifest, err := fetchManifest(ctx, repository, descriptor)
	if err != nil {
		return record{}, err
	}
	chosen, err := pick(ref, manifest)
	if err != nil {
		return record{}, err
	}
	got := record{Digest: descriptor.Digest.String(), File: chosen.file}
	if got.Blob, err = f.layer(ctx, repository, chosen.archive, f.archiveLimit()); err != nil {
		return record{}, err
	}
	if chosen.provenance != nil {
		got.Provenance, err = f.layer(ctx, repository, *chosen.provenance, provenanceLimit)
	}
	return got, err
}

func (f *Fetcher) repository(w wanted, ref registry.Reference, scheme string) (*remote.Repository, func(), error) {
	address, err := parseAddress(scheme + "://" + ref.Host())
	if err != nil {
		return nil, nil, err
	}
	client, done := f.client(w.credentials, originOf(address))
	login := &auth.Client{
		Client: client,
		Cache:  auth.NewCache(),
		Credential: func(ctx context.Context, host string) (auth.Credential, error) {
			if host != ref.Host() {
				return auth.EmptyCredential, nil
			}
			return w.credentials.registry(ctx, host)
		},
	}
	login.SetUserAgent(userAgent)
	return &remote.Repository{
		Client: login, Reference: ref, PlainHTTP: scheme == "http",
		MaxMetadataBytes: maxManifest, TagListMaxPages: maxPages,
	}, done, nil
}

// resolve asks for the digest of what is wanted.
func resolve(ctx context.Context, w wanted, repository *remote.Repository) (ocispec.Descriptor, error) {
	ref := repository.Reference.Reference
	if w.digest == "" {
		d, err := repository.Resolve(ctx, ref)
		if errors.Is(err, errdef.ErrNotFound) {
			return d, withoutTag(ctx, repository)
		}
		return d, err
	}
	d, err := repository.Resolve(ctx, w.digest)
	if !errors.Is(err, errdef.ErrNotFound) || ref == "" {
		return d, err
	}
	// What is pinned is not there. What there is instead is worth more than that.
	tagged, other := repository.Resolve(ctx, ref)
	if other != nil {
		return d, err
	}
	return d, matches(w.digest, tagged.Digest.String())
}

// withoutTag is the error of a tag that does not exist. The tags that do are looked at as far as they can be had.
func withoutTag(ctx context.Context, repository *remote.Repository) error {
	var offered []string
	err := repository.Tags(ctx, "", func(tags []string) error {
		for _, tag := range tags {
			offered = append(offered, strings.ReplaceAll(tag, "_", "+"))
		}
		return nil
	})
	if err != nil && len(offered) == 0 {
		return passing(ErrNotFound, "publish it, or mend the address, its name or its version in the template", "the registry does not have it")
	}
	return withoutVersion(strings.ReplaceAll(repository.Reference.Reference, "_", "+"), offered)
}

func fetchManifest(ctx context.Context, repository *remote.Repository, d ocispec.Descriptor) (ocispec.Manifest, error) {
	var manifest ocispec.Manifest
	if d.MediaType != ocispec.MediaTypeImageManifest {
		return manifest, permanent(ErrInvalid, "push it with `helm push`, `flux push artifact` or `oras push`",
			"what is there is no artifact, but %q", d.MediaType)
	}
	if d.Size > maxManifest {
		return manifest, permanent(ErrTooLarge, "push it again", "its manifest has %s", size(d.Size))
	}
	reader, err := repository.Fetch(ctx, d)
	if err != nil {
		return manifest, err
	}
	defer func() { _ = reader.Close() }()
	data, err := content.ReadAll(reader, d)
	if err != nil {
		return manifest, err
	}
	if err := json.Unmarshal(data, &manifest); err != nil {
		return manifest, permanent(ErrInvalid, "push it again", "its manifest can't be read")
	}
	return manifest, nil
}

// layer brings a layer into the cache.
func (f *Fetcher) layer(ctx context.Context, repository *remote.Repository, d ocispec.Descriptor, l limit) (string, error) {
	if d.Size > l.bytes {
		return "", l.exceeded(d.Size)
	}
	if d.Size < 0 || !isDigest(d.Digest.String()) {
		return "", permanent(ErrInvalid, "push it again", "its manifest has a layer without a size and a sha256 digest")
	}
	reader, err := repository.Blobs().Fetch(ctx, d)
	if err != nil {
		return "", err
	}
	defer func() { _ = reader.Close() }()
	file, err := f.cache.write()
	if err != nil {
		return "", fmt.Errorf("write to the cache: %w", err)
	}
	defer file.discard()
	verified := content.NewVerifyReader(reader, d)
	if err := l.copy(file, verified); err != nil {
		return "", err
	}
	if err := verified.Verify(); err != nil {
		return "", err
	}
	return file.keep()
}

// chartLayers chooses the layers of a chart.
func chartLayers(w wanted) pickFunc {
	return func(ref registry.Reference, manifest ocispec.Manifest) (layers, error) {
		if manifest.Config.MediaType != helm.ConfigMediaType {
			return layers{}, permanent(ErrInvalid, "push it with `helm push`", "it is no chart, but an artifact of the type %q", manifest.Config.MediaType)
		}
		of := func(types ...string) *ocispec.Descriptor {
			i := slices.IndexFunc(manifest.Layers, func(d ocispec.Descriptor) bool { return slices.Contains(types, d.MediaType) })
			if i < 0 {
				return nil
			}
			return &manifest.Layers[i]
		}
		archive := of(helm.ChartLayerMediaType, helm.LegacyChartLayerMediaType)
		if archive == nil {
			return layers{}, permanent(ErrInvalid, "push it with `helm push`", "its manifest has no layer with a chart")
		}
		version := strings.ReplaceAll(ref.Reference, "_", "+")
		chosen := layers{archive: *archive, file: path.Base(ref.Repository) + "-" + version + ".tgz"}
		if !w.credentials.has(keyKeyring) {
			return chosen, nil
		}
		if chosen.provenance = of(helm.ProvLayerMediaType); chosen.provenance == nil {
			return layers{}, unsigned(chosen.file + ".prov")
		}
		return chosen, nil
	}
}

// fileLayers chooses the layer of an artifact with files: the only one, or the only one that says it is a tar archive.
func fileLayers(_ registry.Reference, manifest ocispec.Manifest) (layers, error) {
	candidates := manifest.Layers
	if len(candidates) > 1 {
		candidates = slices.DeleteFunc(slices.Clone(candidates), func(d ocispec.Descriptor) bool { return !strings.Contains(d.MediaType, "tar") })
	}
	if len(candidates) != 1 {
		return layers{}, permanent(ErrInvalid, "push one folder (`flux push artifact`, `oras push … folder/`)",
			"it has to have one layer that is a tar archive, and has %d", len(candidates))
	}
	return layers{archive: candidates[0]}, nil
}
