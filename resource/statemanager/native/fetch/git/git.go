// Package git reads commits of repositories of Git over HTTP. It is for fetch.Config.Git, and links go-git:
//
//	fetcher, err := fetch.New(fetch.Config{Git: git.New()})
//
// A commit is fetched without its history, into memory. What it consists of is not trusted: it is measured before it is unpacked, and bounded by
// the limits of the fetcher. Links and submodules are left out, and what Git LFS has elsewhere stays the pointer that it is. A commit that is
// named by its digits can be had where the server allows that, as GitHub, GitLab and Gitea do.
package git

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch"
)

// Git is a fetch.Git. It is safe for concurrent use.
type Git struct{}

var _ fetch.Git = Git{}

// New returns a Git.
func New() Git { return Git{} }

// Tree implements fetch.Git.
func (Git) Tree(ctx context.Context, from fetch.GitTree, to io.Writer) (string, error) {
	endpoint, err := transport.NewEndpoint(from.URL)
	if err != nil {
		return "", invalid("mend the address in the template", "its address can't be parsed")
	}
	session, err := http.NewClient(from.Client).NewUploadPackSession(endpoint, nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = session.Close() }()
	offered, err := session.AdvertisedReferencesContext(ctx)
	if err != nil {
		return "", fault(err)
	}
	wanted, commit, err := find(offered, from.Ref)
	if err != nil || commit != "" && commit == from.Known {
		return commit, err
	}
	request, err := requestFor(wanted, offered.Capabilities)
	if err != nil {
		return "", err
	}
	answer, err := session.UploadPack(ctx, request)
	if err != nil {
		return "", fault(err)
	}
	defer func() { _ = answer.Close() }()
	objects, err := unpack(answer, from.Limits)
	if err != nil {
		return "", err
	}
	found, err := commitOf(objects, wanted)
	if err != nil {
		return "", broken(err)
	}
	tree, err := found.Tree()
	if err == nil && from.Folder != "" {
		tree, err = tree.Tree(from.Folder)
	}
	if errors.Is(err, object.ErrDirectoryNotFound) {
		return "", invalid("mend the folder in the template, or the ref", fmt.Sprintf("its commit %s has no folder %q", found.Hash, from.Folder))
	}
	if err != nil {
		return "", broken(err)
	}
	w := &writing{to: tar.NewWriter(to), limits: from.Limits}
	top := ""
	if from.Folder != "" {
		top = path.Base(from.Folder)
	}
	if err := w.tree(ctx, tree, top); err != nil {
		return "", err
	}
	return found.Hash.String(), w.to.Close()
}

// requestFor asks for one object without its history, if the server can do that, in an answer that is nothing but the pack.
func requestFor(wanted plumbing.Hash, offered *capability.List) (*packp.UploadPackRequest, error) {
	request := packp.NewUploadPackRequest()
	request.Wants = append(request.Wants, wanted)
	for _, c := range []capability.Capability{capability.OFSDelta, capability.Shallow} {
		if !offered.Supports(c) {
			continue
		}
		if err := request.Capabilities.Set(c); err != nil {
			return nil, err
		}
	}
	if offered.Supports(capability.Shallow) {
		request.Depth = packp.DepthCommits(1)
	}
	return request, nil
}

// find returns what to ask for, and the commit that it stands for, as far as that is known.
func find(offered *packp.AdvRefs, ref string) (plumbing.Hash, string, error) {
	if plumbing.IsHash(ref) {
		return plumbing.NewHash(ref), "", nil
	}
	hash, ok := offered.References[ref]
	if !ok {
		return hash, "", fetch.GitFault(fetch.ErrNotFound, true, "push it, or mend the ref in the template", fmt.Sprintf("the repository has no %s", ref))
	}
	commit := hash
	if peeled, ok := offered.Peeled[ref]; ok {
		commit = peeled // The tag is an object of its own.
	}
	return hash, commit.String(), nil
}

// writing writes trees as a tar archive. A tree may have another one many times over, so that what is written is counted here.
type writing struct {
	to     *tar.Writer
	limits fetch.Limits
	files  int
	bytes  int64
}

func (w *writing) tree(ctx context.Context, tree *object.Tree, folder string) error {
	for _, entry := range tree.Entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if w.files++; w.files > w.limits.Files {
			return tooLarge(fmt.Sprintf("it has more than %d files and folders", w.limits.Files))
		}
		name := path.Join(folder, entry.Name)
		switch entry.Mode {
		case filemode.Dir:
			inner, err := tree.Tree(entry.Name)
			if err != nil {
				return broken(err)
			}
			if err := w.tree(ctx, inner, name); err != nil {
				return err
			}
		case filemode.Regular, filemode.Executable, filemode.Deprecated:
			file, err := tree.TreeEntryFile(&entry)
			if err != nil {
				return broken(err)
			}
			if err := w.file(name, file); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *writing) file(name string, file *object.File) error {
	if w.bytes += file.Size; w.bytes > w.limits.Unpacked || file.Size > w.limits.File {
		return tooLarge(fmt.Sprintf("%s has %d bytes, and all files up to it %d", name, file.Size, w.bytes))
	}
	if err := w.to.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: file.Size, Mode: 0o644}); err != nil {
		return err
	}
	reader, err := file.Reader()
	if err != nil {
		return broken(err)
	}
	defer func() { _ = reader.Close() }()
	_, err = io.Copy(w.to, reader)
	return err
}

// fault makes an error that the fetcher can tell of.
func fault(err error) error {
	switch {
	case errors.Is(err, transport.ErrAuthenticationRequired), errors.Is(err, transport.ErrAuthorizationFailed):
		return fmt.Errorf("%w: the repository", fetch.ErrUnauthorized)
	case errors.Is(err, transport.ErrRepositoryNotFound), errors.Is(err, transport.ErrEmptyRemoteRepository):
		return fetch.GitFault(fetch.ErrNotFound, true, "push it, or mend the address in the template", "there is no repository, or an empty one")
	case errors.Is(err, transport.ErrEmptyUploadPackRequest), strings.Contains(err.Error(), "not our ref"): // go-git has no error for what Git says.
		return fetch.GitFault(fetch.ErrNotFound, true, "mend the ref in the template, or name a branch or a tag", "the server does not give that commit")
	}
	return err
}

func invalid(mend, reason string) error { return fetch.GitFault(fetch.ErrInvalid, false, mend, reason) }

func broken(err error) error {
	return fetch.GitFault(fetch.ErrInvalid, true, "look at it with `git fsck`", fmt.Sprintf("what the server sent can't be read (%v)", err))
}

func tooLarge(reason string) error {
	return fetch.GitFault(fetch.ErrTooLarge, false, "split the repository, or raise the Limits in the operator's configuration of its fetcher", reason)
}
