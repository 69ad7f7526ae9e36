package deployment

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/distribution/reference"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
)

// ErrImageNotOnMachines is an image that is on none of the machines that can be seen, and must not be pulled.
var ErrImageNotOnMachines = errors.New("the image is on none of the machines that can be seen, and the pull policy is never")

// ImageResolverClient sees images on machines and in registries.
type ImageResolverClient interface {
	api.ImageClient
	api.MachineClient
}

// ImageDigestResolver pins images to digests, so that a tag that moves becomes a change that plans show.
type ImageDigestResolver struct {
	// Ctx is the context of the requests. Default: context.Background().
	Ctx context.Context
	// Client makes the requests.
	Client ImageResolverClient
}

// Resolve returns an image with the digest that its tag stands for:
//   - always: in the registry.
//   - missing: on a machine, the newest image if it differs between them; when it is on none, in the registry.
//   - never: on a machine; when it is on none, it is ErrImageNotOnMachines.
//
// An image that has a digest is returned as it is. So is one that is on machines and in no registry, such as one that was built
// there: it has none. An empty policy is missing. Machines that can't be seen are passed over.
func (r *ImageDigestResolver) Resolve(image, policy string) (string, error) {
	ref, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return "", fmt.Errorf("read image %q: %w", image, err)
	}
	if _, pinned := ref.(reference.Digested); pinned {
		return image, nil
	}
	switch api.PullPolicy(policy) {
	case api.PullAlways:
		return r.fromRegistry(image)
	case api.PullMissing, api.PullNever, "":
	default:
		return "", fmt.Errorf("pull policy %q of image %s is none of always, missing, never", policy, image)
	}
	found, err := r.onMachines(image)
	switch {
	case err != nil:
		return "", err
	case found != nil:
		return pin(image, ref.Name(), found), nil
	case api.PullPolicy(policy) == api.PullNever:
		return "", fmt.Errorf("image %s: %w", image, ErrImageNotOnMachines)
	}
	return r.fromRegistry(image)
}

func (r *ImageDigestResolver) context() context.Context {
	if r.Ctx == nil {
		return context.Background()
	}
	return r.Ctx
}

func (r *ImageDigestResolver) fromRegistry(image string) (string, error) {
	digest, err := r.Client.ResolveDigest(r.context(), image)
	if err != nil {
		return "", fmt.Errorf("ask the registry for the digest of image %s: %w", image, err)
	}
	return image + "@" + digest, nil
}

// onMachines returns the newest image of a name.
func (r *ImageDigestResolver) onMachines(image string) (*api.Image, error) {
	name, err := api.ParseImageName(image)
	if err != nil {
		return nil, fmt.Errorf("read image %q: %w", image, err)
	}
	state, err := scheduler.Inspect(r.context(), r.Client)
	if err != nil {
		return nil, fmt.Errorf("look for image %s: %w", image, err)
	}
	var newest *api.Image
	for _, m := range state.Machines {
		for i := range m.Inventory.Images {
			found := &m.Inventory.Images[i]
			if found.Is(name) && (newest == nil || newer(found, newest)) {
				newest = found
			}
		}
	}
	return newest, nil
}

func newer(a, b *api.Image) bool {
	if !a.Created.Equal(&b.Created) {
		return b.Created.Before(&a.Created)
	}
	return a.ID > b.ID
}

// pin returns the image with the digest under which the registry of its name knows it.
func pin(image, name string, found *api.Image) string {
	for _, d := range slices.Sorted(slices.Values(found.Digests)) {
		ref, err := reference.ParseNormalizedNamed(d)
		if err != nil {
			continue
		}
		if digested, ok := ref.(reference.Digested); ok && ref.Name() == name {
			return image + "@" + digested.Digest().String()
		}
	}
	return image
}
