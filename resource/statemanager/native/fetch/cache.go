package fetch

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// record is what a name stood for when it was last asked for.
type record struct {
	// Checked is when that was.
	Checked time.Time `json:"checked"`
	// Digest is what users pin: the digest of the manifest in an OCI registry, or of the archive.
	Digest string `json:"digest"`
	// Blob and Provenance are the contents, by their digests in the cache.
	Blob       string `json:"blob"`
	Provenance string `json:"provenance,omitempty"`
	// File is the name of the archive, which a provenance file names.
	File string `json:"file,omitempty"`
	// Location, ETag and LastModified are where it came from, and what the server said for asking whether it changed.
	Location     string `json:"location,omitempty"`
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"lastModified,omitempty"`
}

const (
	blobs   = "blobs"
	records = "records"
	partial = "partial"
	// block is the least that a file takes of the disk, in bytes.
	block = 4096
	// abandoned is after which time a partial file belongs to a process that is gone.
	abandoned = 24 * time.Hour
)

// cache is a folder with contents by their digests and records by their keys. What can't be read, or is not what it should
// be, is as good as missing.
type cache struct {
	folder string
	bytes  int64
}

func newCache(folder string, bytes int64) (*cache, error) {
	for _, sub := range []string{blobs, records, partial} {
		if err := os.MkdirAll(filepath.Join(folder, sub), 0o700); err != nil {
			return nil, fmt.Errorf("make the cache: %w", err)
		}
	}
	return &cache{folder: folder, bytes: bytes}, nil
}

func (c *cache) blobPath(digest string) string {
	return filepath.Join(c.folder, blobs, strings.TrimPrefix(digest, "sha256:"))
}

// has tells whether there is a content. Whether it is intact shows when it is read.
func (c *cache) has(digest string) bool {
	if !isDigest(digest) {
		return false
	}
	_, err := os.Stat(c.blobPath(digest))
	return err == nil
}

// blob returns a content. One that is damaged is removed.
func (c *cache) blob(digest string) ([]byte, bool) {
	if !isDigest(digest) {
		return nil, false
	}
	path := c.blobPath(digest)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, false
	}
	if digestOf(data) != digest {
		_ = os.Remove(path)
		return nil, false
	}
	c.touch(path)
	return data, true
}

func (c *cache) recordPath(key string) string { return filepath.Join(c.folder, records, key) }

// record returns what is known under a key.
func (c *cache) record(key string) (record, bool) {
	var r record
	path := c.recordPath(key)
	data, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(data, &r) != nil || !isDigest(r.Blob) {
		return record{}, false
	}
	c.touch(path)
	return r, true
}

// put writes down what is known under a key.
func (c *cache) put(key string, r record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	w, err := c.write()
	if err != nil {
		return err
	}
	defer w.discard()
	if _, err := w.Write(data); err != nil {
		return err
	}
	return w.commit(c.recordPath(key))
}

// touch says that a file was used now. Where it fails, the file goes sooner, which does no harm.
func (c *cache) touch(path string) {
	now := time.Now()
	_ = os.Chtimes(path, now, now)
}

// add takes a content from memory.
func (c *cache) add(data []byte) (string, error) {
	w, err := c.write()
	if err != nil {
		return "", err
	}
	defer w.discard()
	if _, err := w.Write(data); err != nil {
		return "", err
	}
	return w.keep()
}

// writer writes a file aside.
type writer struct {
	io.Writer
	cache *cache
	file  *os.File
	hash  hash.Hash
}

// write begins a file. It has to be discarded, also after it was committed.
func (c *cache) write() (*writer, error) {
	file, err := os.CreateTemp(filepath.Join(c.folder, partial), "")
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	return &writer{Writer: io.MultiWriter(file, sum), cache: c, file: file, hash: sum}, nil
}

// digest is the digest of what was written so far.
func (w *writer) digest() string { return "sha256:" + hex.EncodeToString(w.hash.Sum(nil)) }

// keep makes what was written a content.
func (w *writer) keep() (string, error) {
	digest := w.digest()
	return digest, w.commit(w.cache.blobPath(digest))
}

// commit gives the file its name, and removes others if the cache is full.
func (w *writer) commit(path string) error {
	if err := w.file.Close(); err != nil {
		return err
	}
	if err := os.Rename(w.file.Name(), path); err != nil {
		return err
	}
	w.cache.touch(path)
	return w.cache.evict(path)
}

func (w *writer) discard() {
	_ = w.file.Close()
	_ = os.Remove(w.file.Name())
}

type cached struct {
	path string
	size int64
	used time.Time
}

// evict removes what has not been used for the longest time, until the cache is within its bound. One file is kept in any
// case. Only one process at a time does this; another one that finds it busy leaves it to that one.
func (c *cache) evict(kept string) error {
	lock := flock.New(filepath.Join(c.folder, "lock"))
	mine, err := lock.TryLock()
	if err != nil || !mine {
		return err
	}
	defer func() { _ = lock.Close() }()

	var files []cached
	var total int64
	for _, sub := range []string{blobs, records} {
		found, err := list(filepath.Join(c.folder, sub))
		if err != nil {
			return err
		}
		for _, f := range found {
			total += f.size
		}
		files = append(files, found...)
	}
	slices.SortFunc(files, func(a, b cached) int {
		return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.path, b.path))
	})
	for _, f := range files {
		if total <= c.bytes {
			break
		}
		if f.path == kept {
			continue
		}
		if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		total -= f.size
	}
	return c.sweep()
}

// sweep removes what processes that died have left.
func (c *cache) sweep() error {
	files, err := list(filepath.Join(c.folder, partial))
	if err != nil {
		return err
	}
	for _, f := range files {
		if time.Since(f.used) > abandoned {
			_ = os.Remove(f.path)
		}
	}
	return nil
}

// list returns the files of a folder. Those that go meanwhile are left out.
func list(folder string) ([]cached, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	files := make([]cached, 0, len(entries))
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue
		}
		files = append(files, cached{filepath.Join(folder, e.Name()), max(info.Size(), block), info.ModTime()})
	}
	return files, nil
}

// digestOf returns the digest of data.
func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// isDigest tells whether a text is "sha256:" and 64 lower-case hexadecimal digits.
func isDigest(text string) bool {
	digits, ok := strings.CutPrefix(text, "sha256:")
	return ok && len(digits) == 2*sha256.Size && strings.Trim(digits, "0123456789abcdef") == ""
}
