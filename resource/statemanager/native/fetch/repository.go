package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/Masterminds/semver/v3"
	"go.yaml.in/yaml/v2"
	repo "helm.sh/helm/v4/pkg/repo/v1"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// index is what is needed of an index.yaml. It is read straight into this and not into Helm's type by way of JSON, which
// takes more than twice the memory, and it is kept in the cache as JSON, because index files are long and YAML is slow.
type index struct {
	Entries map[string][]*indexed `json:"entries"`
}

// indexed is a version of a chart in an index.
type indexed struct {
	Version string   `json:"version"`
	URLs    []string `json:"urls"`
	Digest  string   `json:"digest,omitempty"`
	Removed bool     `json:"removed,omitempty"`
}

// repositoryChart gets a chart of a chart repository.
func (f *Fetcher) repositoryChart(ctx context.Context, w wanted, address *url.URL, from v1alpha1.HelmChart, old record) (record, error) {
	entry, err := f.lookUp(ctx, w, address, from)
	if err != nil {
		return record{}, err
	}
	location, err := chartAddress(from, entry)
	if err != nil {
		return record{}, err
	}
	got, err := f.indexedChart(ctx, w, location, originOf(address), entry, old)
	if originOf(location) != originOf(address) && err != nil && errors.Is(f.explain(w, err), ErrUnauthorized) {
		err = permanent(ErrUnauthorized, "name that server as the repository, with a Secret for it",
			"its index.yaml leads to %s, which wants credentials and does not get those of the repository", location.Host)
	}
	return got, err
}

// indexedChart gets a chart from where the index says that it is. The login is for the origin of the repository only.
func (f *Fetcher) indexedChart(ctx context.Context, w wanted, location *url.URL, login origin, entry *indexed, old record) (record, error) {
	if location.Scheme == "oci" {
		elsewhere := w
		elsewhere.credentials = w.credentials.keyring()
		return f.registryReference(ctx, elsewhere, location.Host+location.Path, chartLayers(elsewhere), old)
	}
	promised := promisedDigest(entry.Digest)
	if promised != "" {
		if err := matches(w.digest, promised); err != nil {
			return record{}, err
		}
		if old.Digest == promised {
			return old, nil
		}
	}
	got, err := f.download(ctx, w, location, login, old)
	if err != nil {
		return record{}, err
	}
	if promised != "" && got.Digest != promised {
		return record{}, passing(ErrDigest, "index the repository again (`helm repo index`) if this stays so",
			"its index.yaml promises %s, and the archive has %s", promised, got.Digest)
	}
	if err := matches(w.digest, got.Digest); err != nil {
		return record{}, err
	}
	if w.credentials.has(keyKeyring) && got.Provenance == "" {
		got.Provenance, err = f.signature(ctx, w, location, login)
	}
	return got, err
}

// chartAddress is where an index says that a chart is.
func chartAddress(from v1alpha1.HelmChart, entry *indexed) (*url.URL, error) {
	if len(entry.URLs) == 0 {
		return nil, passing(ErrInvalid, "index the repository again (`helm repo index`)", "its index.yaml has no address for it")
	}
	unusable := passing(ErrInvalid, "index the repository again (`helm repo index --url`)", "its index.yaml has an address for it that can't be used")
	text, err := repo.ResolveReferenceURL(from.Repository, entry.URLs[0])
	if err != nil {
		return nil, unusable
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "oci" {
		return nil, unusable
	}
	// Credentials come from the Secret only.
	u.User = nil
	return u, nil
}

// promisedDigest returns the digest of an index, if it is one.
func promisedDigest(text string) string {
	text = "sha256:" + strings.TrimPrefix(strings.ToLower(text), "sha256:")
	if !isDigest(text) {
		return ""
	}
	return text
}

// lookUp finds a version of a chart in the index of its repository.
func (f *Fetcher) lookUp(ctx context.Context, w wanted, address *url.URL, from v1alpha1.HelmChart) (*indexed, error) {
	own := wanted{what: w.what, credentials: w.credentials, key: key("index", from.Repository, w.credentials.fingerprint)}
	update := func(ctx context.Context, old record) (record, error) { return f.updateIndex(ctx, own, address, old) }
	var found *indexed
	err := f.obtain(ctx, own, update, func(_ record, c contents) error {
		var i index
		if err := json.Unmarshal(c.archive, &i); err != nil {
			return fmt.Errorf("read the index from the cache: %w", err)
		}
		var err error
		found, err = i.find(from)
		return err
	})
	return found, err
}

// updateIndex asks for the index of a repository.
func (f *Fetcher) updateIndex(ctx context.Context, w wanted, address *url.URL, old record) (record, error) {
	text, err := repo.ResolveReferenceURL(address.String(), "index.yaml")
	if err != nil {
		return record{}, err
	}
	from, err := url.Parse(text)
	if err != nil {
		return record{}, err
	}
	l := limit{f.limits.Index, "Limits.Index", "remove old versions from the repository's index.yaml"}
	file, got, err := f.get(ctx, w, from, originOf(address), l, old)
	var code status
	if errors.As(err, &code) && code == 404 {
		return record{}, passing(ErrNotFound, "mend the address in the template", "there is no index.yaml, so this is no chart repository")
	}
	if err != nil || file == nil {
		return got, err
	}
	defer file.discard()
	if got.Digest == old.Digest {
		// The server does not say what has not changed.
		got.Blob = old.Blob
		return got, nil
	}
	return f.readIndex(ctx, file, got)
}

// readIndex brings what is needed of an index into the cache.
func (f *Fetcher) readIndex(ctx context.Context, file *writer, got record) (record, error) {
	free, err := f.reserve(ctx)
	if err != nil {
		return record{}, err
	}
	defer free()
	raw, err := os.ReadFile(file.file.Name())
	if err != nil {
		return record{}, fmt.Errorf("read from the cache: %w", err)
	}
	short, err := shorten(raw, f.limits)
	if err != nil {
		return record{}, err
	}
	got.Blob, err = f.cache.add(short)
	return got, err
}

// shorten reads an index.yaml, and leaves out what is not needed.
func shorten(raw []byte, limits Limits) ([]byte, error) {
	if nodes(raw) > limits.Index/8 {
		return nil, tooLarge("Limits.Index", "remove old versions from the repository's index.yaml", "its index.yaml has too many values")
	}
	unreadable := passing(ErrInvalid, "mend the address in the template, or index the repository again (`helm repo index`)",
		"its index.yaml is not the index of a chart repository")
	var i index
	var err error
	if json.Valid(raw) {
		err = json.Unmarshal(raw, &i)
	} else {
		err = yaml.Unmarshal(raw, &i)
	}
	if err != nil || i.Entries == nil {
		return nil, unreadable
	}
	for name, versions := range i.Entries {
		kept := versions[:0]
		for _, v := range versions {
			if v != nil && !v.Removed {
				kept = append(kept, v)
			}
		}
		i.Entries[name] = kept
	}
	return json.Marshal(i)
}

// find returns a version of a chart. It need not be written the same way: v1.2.3 is 1.2.3.
func (i index) find(from v1alpha1.HelmChart) (*indexed, error) {
	versions, ok := i.Entries[from.Chart]
	if !ok {
		return nil, i.withoutChart(from.Chart)
	}
	for _, v := range versions {
		if v.Version == from.Version {
			return v, nil
		}
	}
	offered := make([]string, 0, len(versions))
	for _, v := range versions {
		if sameVersion(v.Version, from.Version) {
			return v, nil
		}
		offered = append(offered, v.Version)
	}
	return nil, withoutVersion(from.Version, offered)
}

// sameVersion tells whether two texts are the same semantic version, with the same metadata.
func sameVersion(a, b string) bool {
	left, err := semver.NewVersion(a)
	if err != nil {
		return false
	}
	right, err := semver.NewVersion(b)
	return err == nil && left.Equal(right) && left.Metadata() == right.Metadata()
}
