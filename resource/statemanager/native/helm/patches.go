package helm

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sort"
	"strings"

	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/patching"
)

// patch changes what the templates came to as the patches of the service say: hooks too. Documents that no patch is for stay byte for byte.
func (r *rendering) patch(ctx context.Context, j *job) error {
	given := j.service.Entry.Patches
	if len(given) == 0 {
		return nil
	}
	patches, err := patching.Of(given)
	if err != nil {
		return err
	}
	for _, file := range slices.Sorted(maps.Keys(r.files)) {
		var documents []string
		changed := false
		for _, text := range documentsOf(r.files[file]) {
			document, matched, err := patchDocument(ctx, patches, text, j.service.Key.Namespace)
			if err != nil {
				return err
			}
			changed = changed || matched
			if document != "" {
				documents = append(documents, document)
			}
		}
		switch {
		case changed && len(documents) == 0:
			delete(r.files, file)
		case changed:
			r.files[file] = strings.Join(documents, "\n---\n")
		}
	}
	return patches.Missed()
}

// documentsOf returns the documents of a file, in their order.
func documentsOf(file string) []string {
	split := releaseutil.SplitManifests(file)
	names := slices.Collect(maps.Keys(split))
	sort.Sort(releaseutil.BySplitManifestsOrder(names))
	documents := make([]string, 0, len(names))
	for _, name := range names {
		documents = append(documents, split[name])
	}
	return documents
}

// patchDocument returns a document as patches make it, and whether there is one for it. It is empty where all of it is deleted.
func patchDocument(ctx context.Context, patches *patching.Patches, document, namespace string) (text string, matched bool, err error) {
	var content map[string]any
	if yaml.Unmarshal([]byte(document), &content) != nil || content["kind"] == nil {
		return document, false, nil // It is Helm's to say what is wrong with it.
	}
	objects, err := parseDocument([]byte(document))
	if err != nil || len(objects) == 0 {
		return document, false, nil
	}
	var left []any
	for _, u := range objects {
		patched, is, err := patches.Apply(ctx, u.Object, namespace)
		if err != nil {
			return "", true, err
		}
		matched = matched || is
		if patched != nil {
			left = append(left, patched)
		}
	}
	switch {
	case !matched:
		return document, false, nil
	case len(left) == 0:
		return "", true, nil
	}
	whole := left[0]
	if list := (&unstructured.Unstructured{Object: content}); list.IsList() {
		content["items"], whole = left, content
	}
	said, err := yaml.Marshal(whole)
	if err != nil {
		return "", true, framework.Permanent(errors.Join(errors.New("what patches make is no YAML"), err))
	}
	return string(said), true, nil
}
