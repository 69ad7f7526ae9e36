package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
)

// limit is a bound in bytes, and its name in the configuration.
type limit struct {
	bytes int64
	name  string
	mend  string
}

func (f *Fetcher) archiveLimit() limit {
	return limit{f.limits.Download, "Limits.Download", "make it smaller (in a chart, .helmignore keeps files out)"}
}

func (l limit) exceeded(bytes int64) error {
	if bytes < 0 {
		return tooLarge(l.name, l.mend, "it has more than %s, which is the limit", size(l.bytes))
	}
	return tooLarge(l.name, l.mend, "it has %s, and the limit is %s", size(bytes), size(l.bytes))
}

// copy copies at most what the limit allows.
func (l limit) copy(to io.Writer, from io.Reader) error {
	n, err := io.Copy(to, io.LimitReader(from, l.bytes+1))
	if err != nil {
		return err
	}
	if n > l.bytes {
		return l.exceeded(-1)
	}
	return nil
}

// download brings an archive from a web server into the cache, unless the server says that it is still the old one. The
// login is for one origin only.
func (f *Fetcher) download(ctx context.Context, w wanted, from *url.URL, login origin, old record) (record, error) {
	file, got, err := f.get(ctx, w, from, login, f.archiveLimit(), old)
	if err != nil || file == nil {
		return got, err
	}
	defer file.discard()
	got.Blob, err = file.keep()
	if err != nil {
		return record{}, fmt.Errorf("write to the cache: %w", err)
	}
	return got, nil
}

// get asks for something on a web server, and writes it into a file that has to be discarded. There is no file if the old
// one is still the right one.
func (f *Fetcher) get(ctx context.Context, w wanted, from *url.URL, login origin, l limit, old record) (*writer, record, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from.String(), nil)
	if err != nil {
		return nil, record{}, err
	}
	req.Header.Set("User-Agent", userAgent)
	if originOf(from) == login {
		w.credentials.authorize(req)
	}
	if old.Location == location(from) {
		setIf(req.Header, "If-None-Match", old.ETag)
		setIf(req.Header, "If-Modified-Since", old.LastModified)
	}
	client, done := f.client(w.credentials, login)
	defer done()
	resp, err := client.Do(req)
	if err != nil {
		return nil, record{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode == http.StatusNotModified && old.Location == location(from):
		return nil, old, nil
	case resp.StatusCode != http.StatusOK:
		return nil, record{}, status(resp.StatusCode)
	case resp.ContentLength > l.bytes:
		return nil, record{}, l.exceeded(resp.ContentLength)
	}
	file, err := f.cache.write()
	if err != nil {
		return nil, record{}, fmt.Errorf("write to the cache: %w", err)
	}
	if err := l.copy(file, resp.Body); err != nil {
		file.discard()
		return nil, record{}, err
	}
	return file, record{
		Digest:       file.digest(),
		File:         path.Base(from.Path),
		Location:     location(from),
		ETag:         resp.Header.Get("ETag"),
		LastModified: resp.Header.Get("Last-Modified"),
	}, nil
}

// location stands for an address in the cache. Its query may be secret.
func location(u *url.URL) string { return key(u.String()) }

func setIf(header http.Header, name, value string) {
	if value != "" {
		header.Set(name, value)
	}
}

// signature brings the provenance file of a chart into the cache.
func (f *Fetcher) signature(ctx context.Context, w wanted, chart *url.URL, login origin) (string, error) {
	from := *chart
	from.Path, from.RawPath = from.Path+".prov", ""
	file, _, err := f.get(ctx, w, &from, login, provenanceLimit, record{})
	var code status
	if errors.As(err, &code) && code == http.StatusNotFound {
		return "", unsigned(path.Base(from.Path))
	}
	if err != nil {
		return "", err
	}
	defer file.discard()
	return file.keep()
}
