package helm

import (
	"context"
	"crypto/sha256"
	"io"
	"time"

	release "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// parsedSize is about how many bytes a parsed object takes for each byte of its manifest.
const parsedSize = 6

// revisionKey names a version of a revision on any cluster.
type revisionKey struct {
	uid     types.UID
	version string
}

// contentKey is a hash of what a revision has put onto its cluster, and of the namespace.
type contentKey [sha256.Size]byte

// content is what revisions of the same content have put onto their clusters. Nobody may change it.
type content struct {
	objects, hooks []*unstructured.Unstructured
}

// revision is what is kept of one.
type revision struct {
	content contentKey
	applied time.Time
}

// remembered is what a revision has put on the cluster.
type remembered struct {
	*content
	*revision
}

// remember returns what a revision has put on the cluster, from memory if it can.
func (j *job) remember(ctx context.Context, r *record) (*remembered, error) {
	key := revisionKey{uid: r.uid, version: r.version}
	if known, ok := j.revisions.Get(key); ok {
		if shared, ok := j.contents.Get(known.content); ok {
			return &remembered{shared, known}, nil
		}
	}
	found, err := j.load(ctx, r)
	if err != nil {
		return nil, err
	}
	shared, of, err := j.share(found.Release)
	if err != nil {
		return nil, err
	}
	known := &revision{content: of}
	if found.Info != nil {
		known.applied = found.Info.LastDeployed
	}
	// About what the key takes.
	j.revisions.Add(key, known, 512)
	return &remembered{shared, known}, nil
}

// share returns what a release has put on its cluster, which others of the same content have too.
func (j *job) share(r *release.Release) (*content, contentKey, error) {
	hash, size := sha256.New(), len(r.Manifest)
	texts := []string{j.service.Key.Namespace, r.Manifest}
	for _, h := range r.Hooks {
		texts = append(texts, h.Manifest)
		size += len(h.Manifest)
	}
	for _, text := range texts {
		_, _ = io.WriteString(hash, text) // it never fails
		_, _ = hash.Write([]byte{0})
	}
	key := contentKey(hash.Sum(nil))
	if shared, ok := j.contents.Get(key); ok && j.isPlaced(shared) {
		return shared, key, nil
	}
	objects, err := j.placed(r.Manifest, nil, false)
	if err != nil {
		return nil, key, err
	}
	hooks, err := j.hooksOf(r.Hooks)
	if err != nil {
		return nil, key, err
	}
	shared := &content{objects: objects, hooks: hooks}
	j.contents.Add(key, shared, parsedSize*size)
	return shared, key, nil
}

// isPlaced tells whether this cluster has all kinds of a content, and puts their objects into namespaces as the cluster does where it was read.
func (j *job) isPlaced(shared *content) bool {
	for _, u := range shared.objects {
		mapping, err := j.mapper.RESTMapping(u.GroupVersionKind().GroupKind(), u.GroupVersionKind().Version)
		if err != nil || (mapping.Scope.Name() == meta.RESTScopeNameNamespace) != (u.GetNamespace() != "") {
			return false
		}
	}
	return true
}
