package fetch

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/artifact"
)

// unpackers is how many archives and indexes are unpacked at the same time, because that is what takes memory.
const unpackers = 2

// Fetcher gets charts and files. It is safe for concurrent use, starts nothing that has to be stopped, and has to be made
// by New.
type Fetcher struct {
	limits Limits
	git    Git
	cosign Cosign
	trust  time.Duration
	cache  *cache
	calls  flights[record]
	memory chan struct{}
}

// New returns a Fetcher, and makes the folder of its cache.
func New(config Config) (*Fetcher, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("make a fetcher: %w", err)
	}
	cache, err := newCache(config.Folder, config.Bytes)
	if err != nil {
		return nil, fmt.Errorf("make a fetcher: %w", err)
	}
	return &Fetcher{
		limits: config.Limits, git: config.Git, cosign: config.Cosign, trust: config.Trust, cache: cache, memory: make(chan struct{}, unpackers),
	}, nil
}

// wanted is one thing to get.
type wanted struct {
	// what it is in errors.
	what string
	// digest is what it is pinned to, if it is.
	digest      string
	credentials Credentials
	// verify are the keys of which one has to have signed it; none if nobody has to.
	verify []string
	// key is its name in the cache.
	key string
}

// Chart gets a chart. It is another copy at every call, which belongs to the caller. An error is an *Error, or that of the
// context.
func (f *Fetcher) Chart(ctx context.Context, from v1alpha1.HelmChart, with Credentials) (*artifact.Chart, error) {
	w := wanted{
		what:        fmt.Sprintf("chart %s %s of %s", from.Chart, from.Version, shown(from.Repository)),
		digest:      pinned(from.Digest, from.Ref),
		credentials: with,
		verify:      keysOf(from.Verify),
		key: key("chart", from.Repository, from.Chart, from.Version, from.Digest, with.fingerprint, from.Ref,
			strings.Join(keysOf(from.Verify), "\x00")),
	}
	chart, err := f.chart(ctx, w, from)
	if err != nil {
		return nil, f.explain(w, err)
	}
	return chart, nil
}

func (f *Fetcher) chart(ctx context.Context, w wanted, from v1alpha1.HelmChart) (*artifact.Chart, error) {
	address, err := parseAddress(from.Repository)
	if err != nil {
		return nil, err
	}
	update := func(ctx context.Context, old record) (record, error) {
		return f.repositoryChart(ctx, w, address, from, old)
	}
	switch {
	case address.Scheme == "oci":
		update = func(ctx context.Context, old record) (record, error) { return f.registryChart(ctx, w, from, old) }
	case isGit(address):
		update = func(ctx context.Context, old record) (record, error) {
			return f.commit(ctx, w, address, GitTree{Ref: from.Ref, Folder: path.Clean(from.Chart)}, old)
		}
	}
	var chart *artifact.Chart
	err = f.obtain(ctx, w, update, func(r record, c contents) error {
		var err error
		if chart, err = unpackChart(c.archive, f.limits); err != nil {
			return err
		}
		chart.Digest = r.Digest
		if err := isChart(chart, from); err != nil {
			return err
		}
		chart.SignedBy, err = f.verify(r.File, c, w.credentials)
		return err
	})
	if err != nil {
		return nil, err
	}
	return chart, nil
}

// Files gets an archive of files. An error is an *Error, or that of the context.
func (f *Fetcher) Files(ctx context.Context, from v1alpha1.Artifact, with Credentials) (*artifact.Files, error) {
	w := wanted{
		what:        "files of " + shown(from.URL),
		digest:      pinned(from.Digest, from.Ref),
		credentials: with,
		verify:      keysOf(from.Verify),
		key:         key("files", from.URL, from.Digest, with.fingerprint, from.Ref, strings.Join(keysOf(from.Verify), "\x00")),
	}
	files, err := f.files(ctx, w, from)
	if err != nil {
		return nil, f.explain(w, err)
	}
	return files, nil
}

func (f *Fetcher) files(ctx context.Context, w wanted, from v1alpha1.Artifact) (*artifact.Files, error) {
	address, err := parseAddress(from.URL)
	if err != nil {
		return nil, err
	}
	update := func(ctx context.Context, old record) (record, error) {
		got, err := f.download(ctx, w, address, originOf(address), old)
		if err != nil {
			return record{}, err
		}
		return got, matches(w.digest, got.Digest)
	}
	switch {
	case address.Scheme == "oci":
		update = func(ctx context.Context, old record) (record, error) { return f.registryFiles(ctx, w, from, old) }
	case isGit(address):
		update = func(ctx context.Context, old record) (record, error) {
			return f.commit(ctx, w, address, GitTree{Ref: from.Ref}, old)
		}
	}
	var files *artifact.Files
	err = f.obtain(ctx, w, update, func(r record, c contents) error {
		unpacked, err := f.limits.unpacking().read(bytes.NewReader(c.archive))
		if err != nil {
			return err
		}
		files = &artifact.Files{FS: newMemory(unpacked), Digest: r.Digest}
		return nil
	})
	return files, err
}

// attempts is how often something is fetched again that has vanished from the cache before it could be read.
const attempts = 3

// obtain brings a thing into the cache, unless it is there and trusted, and uses it.
func (f *Fetcher) obtain(ctx context.Context, w wanted, update updateFunc, use useFunc) error {
	for range attempts {
		r, err := f.calls.do(ctx, w.key, f.limits.Timeout, func(ctx context.Context) (record, error) {
			return f.current(ctx, w, update)
		})
		if err != nil {
			return err
		}
		done, err := f.use(ctx, r, use)
		if done || err != nil {
			return err
		}
	}
	return passing(ErrUnavailable, "give it a larger Config.Bytes if this stays so", "it vanished from the cache before it could be read")
}

// updateFunc asks where a thing is from. It gets what was known, or a zero record.
type updateFunc func(ctx context.Context, old record) (record, error)

// contents are what the digests of a record stand for. Nobody may change them.
type contents struct{ archive, provenance []byte }

// useFunc makes something of what was fetched.
type useFunc func(record, contents) error

// use reads the contents and lets them be unpacked. It reports whether they were there.
func (f *Fetcher) use(ctx context.Context, r record, use useFunc) (bool, error) {
	free, err := f.reserve(ctx)
	if err != nil {
		return false, err
	}
	defer free()
	var c contents
	ok := false
	if c.archive, ok = f.cache.blob(r.Blob); !ok {
		return false, nil
	}
	if r.Provenance != "" {
		if c.provenance, ok = f.cache.blob(r.Provenance); !ok {
			return false, nil
		}
	}
	return true, use(r, c)
}

// reserve waits until there is memory for unpacking something.
func (f *Fetcher) reserve(ctx context.Context) (free func(), err error) {
	select {
	case f.memory <- struct{}{}:
		return func() { <-f.memory }, nil
	case <-ctx.Done():
		return nil, &goneError{ctx.Err()}
	}
}

// current returns what a thing is now.
func (f *Fetcher) current(ctx context.Context, w wanted, update updateFunc) (record, error) {
	old, known := f.cache.record(w.key)
	if !known || !f.cache.has(old.Blob) || old.Provenance != "" && !f.cache.has(old.Provenance) {
		old, known = record{}, false
	}
	age := time.Since(old.Checked)
	if known && (w.digest != "" || age >= 0 && age < f.trust) {
		return old, nil
	}
	now, err := update(ctx, old)
	var gone *goneError
	if errors.As(err, &gone) {
		// This call was the caller, of the call that gets the index.
		err = gone.err
	}
	switch {
	case err == nil:
		now.Checked = time.Now()
	case known && ctx.Err() != context.Canceled && errors.Is(f.explain(w, err), ErrUnavailable):
		// The old one stays. It is asked for again soon, but not every time, because waiting for an answer takes long.
		now = old
		now.Checked = time.Now().Add(-f.trust + f.trust/10)
	default:
		return record{}, err
	}
	if err := f.cache.put(w.key, now); err != nil {
		return record{}, fmt.Errorf("write to the cache: %w", err)
	}
	return now, nil
}

// key makes a name of the cache.
func key(parts ...string) string {
	// Strings can always be encoded.
	data, _ := json.Marshal(parts)
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// matches compares a digest with the one that something is pinned to.
func matches(wanted, got string) error {
	if wanted == "" || wanted == got {
		return nil
	}
	return permanent(ErrDigest, "find out why it has changed, and pin the right digest",
		"the template wants %s, and what is there has %s", wanted, cmp.Or(strings.TrimSpace(got), "none"))
}
