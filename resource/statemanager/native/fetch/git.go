package fetch

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
)

// Git reads commits of repositories. It is called by many goroutines.
type Git interface {
	// Tree asks a repository for a commit, and writes the files of a folder of it as a tar archive, unless it is the one that is known. It
	// returns the commit as 40 hexadecimal digits. An error is an *Error, that of the client, or one for which errors.Is says
	// ErrUnauthorized.
	Tree(ctx context.Context, from GitTree, to io.Writer) (commit string, err error)
}

// GitTree is a folder of a commit.
type GitTree struct {
	// URL is the address of the repository, with https:// or http://.
	URL string
	// Ref is a branch or a tag by its full name, or a commit.
	Ref string
	// Folder is the folder, whose name is the first part of each path in the archive; "" is the top, whose files have no such part.
	Folder string
	// Known is a commit that need not be fetched again; "" for none.
	Known string
	// Client is what is asked with. It logs in, and bounds redirects.
	Client *http.Client
	// Limits are to be kept: Download for what is sent, Unpacked and Files for what comes of it.
	Limits Limits
}

// gitDigest is what a digest of a commit begins with.
const gitDigest = "git:"

func isGit(address *url.URL) bool { return strings.HasPrefix(address.Scheme, "git+") }

// pinned is what something is pinned to: its digest, or its commit.
func pinned(digest, ref string) string {
	if ref != "" && !strings.HasPrefix(ref, "refs/") {
		return gitDigest + ref
	}
	return digest
}

// commit brings the files of a commit into the cache, unless it is still the old one.
func (f *Fetcher) commit(ctx context.Context, w wanted, address *url.URL, from GitTree, old record) (record, error) {
	if f.git == nil {
		return record{}, permanent(ErrInvalid, "take it from elsewhere, or set Git in the operator's configuration of its fetcher",
			"Git is not wired into this operator")
	}
	plain := *address
	plain.Scheme = strings.TrimPrefix(address.Scheme, "git+")
	login := originOf(&plain)
	client, done := f.client(w.credentials, login)
	defer done()
	session := &loggingIn{credentials: w.credentials, origin: login, next: client.Transport, most: f.limits.Download + furtherAnswer}
	client.Transport = session
	from.URL, from.Client, from.Limits = plain.String(), client, f.limits
	from.Known = strings.TrimPrefix(old.Digest, gitDigest)

	file, err := f.cache.write()
	if err != nil {
		return record{}, fmt.Errorf("write to the cache: %w", err)
	}
	defer file.discard()
	zipped := gzip.NewWriter(&limited{to: file, left: f.limits.Download, err: f.archiveLimit().exceeded(-1)})
	commit, err := f.git.Tree(ctx, from, zipped)
	if session.exceeded.Load() {
		err = f.archiveLimit().exceeded(-1)
	}
	if err != nil {
		return record{}, err
	}
	if err := matches(w.digest, gitDigest+commit); err != nil {
		return record{}, err
	}
	if commit == from.Known {
		return old, nil
	}
	if err := zipped.Close(); err != nil {
		return record{}, err
	}
	blob, err := file.keep()
	if err != nil {
		return record{}, fmt.Errorf("write to the cache: %w", err)
	}
	return record{Digest: gitDigest + commit, Blob: blob}, nil
}

// furtherAnswer is how much a server may say in an answer beside what is fetched, in bytes: the references that it has, of which there may be
// some hundred thousand.
const furtherAnswer = 64 << 20

// loggingIn adds a login to requests of one origin, and bounds what is sent: a Git has in memory what a server tells of its references, and of
// its errors.
type loggingIn struct {
	credentials Credentials
	origin      origin
	next        http.RoundTripper
	// most is how many bytes an answer may have, and exceeded tells that one had more.
	most     int64
	exceeded atomic.Bool
}

// RoundTrip implements http.RoundTripper.
func (l *loggingIn) RoundTrip(req *http.Request) (*http.Response, error) {
	if originOf(req.URL) == l.origin {
		req = req.Clone(req.Context())
		l.credentials.authorize(req)
	}
	answer, err := l.next.RoundTrip(req)
	if err == nil {
		answer.Body = &boundedBody{ReadCloser: answer.Body, left: l.most, exceeded: &l.exceeded}
	}
	return answer, err
}

// errTooLong ends an answer that is longer than it may be.
var errTooLong = errors.New("the answer is too long")

// boundedBody is the body of an answer, which ends with an error after what is left.
type boundedBody struct {
	io.ReadCloser
	left     int64
	exceeded *atomic.Bool
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		b.exceeded.Store(true)
		return 0, errTooLong
	}
	return n, err
}

// limited writes no more than what is left.
type limited struct {
	to   io.Writer
	left int64
	err  error
}

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= int64(len(p)); l.left < 0 {
		return 0, l.err
	}
	return l.to.Write(p)
}

// GitFault returns an *Error for a Git to return, of one of the classes: why, and what to do about it. One that passes may be gone when it is
// tried again.
func GitFault(class error, passes bool, mend, reason string) error {
	e := permanent(class, mend, "%s", reason)
	e.permanent = !passes
	return e
}
