package manifest

import (
	"context"
	"fmt"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/patching"
)

// patched changes manifests as the patches of the service say.
func patched(ctx context.Context, service *carrier.Service, manifests []manifest) ([]manifest, error) {
	if len(service.Entry.Patches) == 0 {
		return manifests, nil
	}
	patches, err := patching.Of(service.Entry.Patches)
	if err != nil {
		return nil, err
	}
	var left []manifest
	for _, m := range manifests {
		content, matched, err := patches.Apply(ctx, m.Object.Object, service.Key.Namespace)
		switch {
		case err != nil:
			return nil, err
		case !matched:
			left = append(left, m)
			continue
		case content == nil:
			continue
		}
		object, err := objectOf(document{file: m.File + ", with its patches", value: content})
		if err != nil {
			return nil, framework.Permanent(err)
		}
		left = append(left, manifest{File: m.File, Sensitive: m.Sensitive || isSecret(object), Object: object})
	}
	if err := patches.Missed(); err != nil {
		return nil, err
	}
	if len(left) == 0 {
		return nil, framework.Permanent(fmt.Errorf("its patches leave no object: take the service out instead"))
	}
	return left, nil
}
