package machines

import (
	"context"
	"fmt"
	"strings"

	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// pin makes the image of a service with the pull policy always the one that its tag stands for now, so that a tag that has moved is a
// change of the service like any other, and has the registry asked again after some time. While the registry does not say, the image
// that the service has stays, and the note says why.
func (f *serviceFramework) pin(ctx context.Context, c *cluster, svc *v1alpha1.MachineService, spec *api.ServiceSpec) (note string, err error) {
	image := spec.Container.Image
	if _, err := api.ParseImageName(image); err != nil || spec.Container.PullPolicy != api.PullAlways {
		return "", nil // what is wrong with it is said with all other faults
	}
	requeuecontext.SetAfter(ctx, f.registryPeriod)
	resolver := &deployment.ImageDigestResolver{Ctx: ctx, Client: c}
	pinned, err := resolver.Resolve(image, string(api.PullAlways))
	if err != nil {
		if pinned = pinnedBefore(svc, image); pinned == "" {
			return "", err
		}
		note = fmt.Sprintf("whether image %s has moved is not known: %s", image, err)
	}
	spec.Container.Image = pinned
	return note, nil
}

// pinnedBefore returns the image with its digest that containers of the service have, if they do: of those that are as the spec says, if
// there are any.
func pinnedBefore(svc *v1alpha1.MachineService, image string) string {
	var found string
	for i := range svc.Status.Machines {
		for _, c := range svc.Status.Machines[i].Containers {
			switch {
			case c.Failed || !strings.HasPrefix(c.Image, image+"@"):
			case c.UpToDate:
				return c.Image
			default:
				found = c.Image
			}
		}
	}
	return found
}
