package manifest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/operatorkit/operatorkit/internal/panics"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/patching"
)

// build builds a kustomization. It sees only those files that were found to be harmless.
func (c *Carrier) build(ctx context.Context, files fs.FS, folder string, budget *budget) ([]document, error) {
	to, err := gather(files, path.Clean(folder), budget)
	if err != nil {
		return nil, err
	}

	release, err := patching.Exclusive(ctx)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, c.config.Limits.Time,
		fmt.Errorf("its kustomization takes longer than %s to build", c.config.Limits.Time))
	defer cancel()
	type answer struct {
		documents []document
		err       error
	}
	// A build can't be interrupted: one that takes too long ends by itself, and until then no other one begins.
	built := make(chan answer, 1)
	go func() {
		defer release()
		documents, err := run(to, path.Clean(folder))
		built <- answer{documents, err}
	}()
	select {
	case a := <-built:
		if a.err != nil {
			return nil, a.err
		}
		if n := len(a.documents); n > c.config.Limits.Objects {
			return nil, fmt.Errorf("it has %d objects, and more than %d are too many: split the service", n, c.config.Limits.Objects)
		}
		return a.documents, nil
	case <-limited.Done():
		return nil, context.Cause(limited)
	}
}

// run runs kustomize.
func run(files filesys.FileSystem, folder string) (documents []document, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("its kustomization makes kustomize fail: %s", panics.Describe(v))
		}
	}()
	// The defaults of the options are: files of the kustomization only, no plugins but those that are built in.
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionNone
	found, err := krusty.MakeKustomizer(options).Run(files, path.Join("/", folder))
	if err != nil {
		return nil, fmt.Errorf("its kustomization can't be built: %w", err)
	}
	if found.Size() == 0 {
		return nil, errors.New("its kustomization has no objects")
	}
	for _, each := range found.Resources() {
		encoded, err := each.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", each.CurId(), err)
		}
		value, err := decode(encoded)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", each.CurId(), err)
		}
		documents = append(documents, document{file: "kustomization in " + path.Join("/", folder), value: value})
	}
	return documents, nil
}
