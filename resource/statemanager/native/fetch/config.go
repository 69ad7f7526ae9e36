package fetch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Config is what a Fetcher needs. The zero value is a valid configuration.
type Config struct {
	// Folder is where the cache is. It is made when it is missing, and may be shared by several processes. The default is
	// operatorkit/fetch in the user's cache folder (os.UserCacheDir).
	Folder string
	// Bytes bounds the cache. It has to be at least as large as Limits.Download and Limits.Index. The default is 512 MiB.
	Bytes int64
	// Trust is how long what was fetched by a name (a tag, a version, the address of an archive) is taken to be still the
	// same. The default is ten minutes; a negative value asks every time. What is pinned by a digest is trusted for ever.
	Trust time.Duration
	// Limits bound what is read from others.
	Limits Limits
	// Git reads repositories of Git: git.New() of the package git below this one, which links go-git. Default: none, and templates that name
	// one are refused.
	Git Git
	// Cosign checks signatures: cosign.New() of the package cosign below this one, which links sigstore. Default: none, and templates with
	// verify are refused.
	Cosign Cosign
}

// Limits bound what is read from others. A zero is the default, and a negative value is an error.
type Limits struct {
	// Download is the largest archive that is fetched, in bytes as it comes over the wire. An answer of a server of Git may have 64 MiB more,
	// for its references. The default is 16 MiB.
	Download int64
	// Index is the largest index.yaml of a chart repository, in bytes. Reading one takes about ten times as much memory, and
	// at most two are read at a time. It may have a value for every eight bytes of the limit. The default is 16 MiB.
	Index int64
	// Unpacked is the largest archive after unpacking, in bytes, with everything that is packed in it once more. The files
	// that make a chart (Chart.yaml, values.yaml) may have a value for every 64 bytes of the limit. The default is 64 MiB.
	Unpacked int64
	// File is the largest single file of an archive, in bytes. The default is 5 MiB, which is Helm's.
	File int64
	// Files is the largest number of entries of an archive. The default is 10000.
	Files int
	// Path is the longest path of a file in an archive, in bytes. The default is 512.
	Path int
	// Redirects is how many redirects are followed for one request. The default is 5.
	Redirects int
	// Timeout is how long getting one thing may take, from the first request to the last byte. The default is two minutes.
	Timeout time.Duration
}

// withDefaults validates the configuration and fills it.
func (c Config) withDefaults() (Config, error) {
	if c.Folder == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return c, fmt.Errorf("find a folder for the cache (set Config.Folder): %w", err)
		}
		c.Folder = filepath.Join(user, "operatorkit", "fetch")
	}
	if c.Trust == 0 {
		c.Trust = 10 * time.Minute
	}
	l := &c.Limits
	err := errors.Join(
		fill("Config.Bytes", &c.Bytes, 512<<20),
		fill("Limits.Download", &l.Download, 16<<20),
		fill("Limits.Index", &l.Index, 16<<20),
		fill("Limits.Unpacked", &l.Unpacked, 64<<20),
		fill("Limits.File", &l.File, 5<<20),
		fill("Limits.Files", &l.Files, 10_000),
		fill("Limits.Path", &l.Path, 512),
		fill("Limits.Redirects", &l.Redirects, 5),
		fill("Limits.Timeout", &l.Timeout, 2*time.Minute),
	)
	if err == nil && c.Bytes < max(l.Download, l.Index) {
		err = fmt.Errorf("a cache of %d bytes (Config.Bytes) can't hold what Limits.Download and Limits.Index allow", c.Bytes)
	}
	return c, err
}

// fill sets the default of a value that is zero.
func fill[T int | int64 | time.Duration](name string, value *T, otherwise T) error {
	if *value < 0 {
		return fmt.Errorf("%s is negative", name)
	}
	if *value == 0 {
		*value = otherwise
	}
	return nil
}
