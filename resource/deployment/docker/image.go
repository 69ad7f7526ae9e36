package docker

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"
	"github.com/moby/moby/api/types/jsonstream"
	"github.com/moby/moby/api/types/registry"
	moby "github.com/moby/moby/client"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// nameless is what older engines call images without a name.
const nameless = "<none>"

func named(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return strings.Contains(n, nameless) })
}

// images returns all images, by ID.
func images(ctx context.Context, engine *moby.Client) ([]api.Image, error) {
	list, err := engine.ImageList(ctx, moby.ImageListOptions{})
	if err != nil {
		return nil, err
	}
	var out []api.Image
	for _, i := range list.Items {
		out = append(out, api.Image{ID: i.ID, Tags: named(i.RepoTags), Digests: named(i.RepoDigests), Created: metav1.Unix(i.Created, 0)})
	}
	slices.SortFunc(out, func(a, b api.Image) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// InspectImage implements api.ImageClient.
func (c *Client) InspectImage(ctx context.Context, machineID, image string) (api.Image, error) {
	var out api.Image
	err := c.on(ctx, machineID, func(ctx context.Context, engine *moby.Client) error {
		inspected, err := engine.ImageInspect(ctx, image)
		if err != nil {
			return err
		}
		out = api.Image{ID: inspected.ID, Tags: named(inspected.RepoTags), Digests: named(inspected.RepoDigests)}
		if created, err := time.Parse(time.RFC3339Nano, inspected.Created); err == nil {
			out.Created = metav1.NewTime(created)
		}
		return nil
	})
	return out, err
}

// PullImage implements api.ImageClient. The engine pulls with what Config.Credentials gives for the registry.
func (c *Client) PullImage(ctx context.Context, machineID, image string, progress func(api.PullProgress)) error {
	credentials, host, err := c.credentials(ctx, image)
	if err != nil {
		return err
	}
	login, err := credentials.login(host)
	if err != nil {
		return err
	}
	m, err := c.machine(machineID)
	if err != nil {
		return err
	}
	err = m.change(ctx, func(ctx context.Context, engine *moby.Client) error {
		pull, err := engine.ImagePull(ctx, image, moby.ImagePullOptions{RegistryAuth: login})
		if err != nil {
			return err
		}
		defer func() { _ = pull.Close() }()
		layers := map[string]jsonstream.Progress{}
		for message, err := range pull.JSONMessages(ctx) {
			switch {
			case err != nil:
				return err
			case message.Error != nil:
				return message.Error
			case message.Progress != nil && message.Status == "Downloading" && progress != nil:
				layers[message.ID] = *message.Progress
				progress(sum(layers))
			}
		}
		return nil
	})
	return credentials.explain(ctx, host, err)
}

func sum(layers map[string]jsonstream.Progress) api.PullProgress {
	var all api.PullProgress
	for _, p := range layers {
		all.Current += p.Current
		all.Total += p.Total
	}
	return all
}

// credentials returns what the registry of an image asks for, and the name of the registry.
func (c *Client) credentials(ctx context.Context, image string) (Credentials, string, error) {
	ref, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return Credentials{}, "", fmt.Errorf("read image %q: %w", image, err)
	}
	host := reference.Domain(ref)
	if c.config.Credentials == nil {
		return Credentials{}, host, nil
	}
	credentials, err := c.config.Credentials(ctx, host)
	if err != nil {
		return Credentials{}, "", fmt.Errorf("get the credentials for registry %s: %w", host, err)
	}
	return credentials, host, nil
}

// login returns the credentials as engines take them.
func (c *Credentials) login(host string) (string, error) {
	if c.empty() {
		return "", nil
	}
	login := registry.AuthConfig{ServerAddress: host, Username: c.Username, Password: string(c.Password)}
	if c.Token != "" {
		login = registry.AuthConfig{ServerAddress: host, RegistryToken: string(c.Token)}
	}
	text, err := json.Marshal(login)
	if err != nil {
		return "", err
	}
	return base64.URLEncoding.EncodeToString(text), nil
}

// registryTries is how many machines are asked what a registry says before their errors are believed.
const registryTries = 3

// ResolveDigest implements api.ImageClient. An engine asks the registry, as it does when it pulls: one that can reach it, of those that
// answer.
func (c *Client) ResolveDigest(ctx context.Context, image string) (string, error) {
	credentials, host, err := c.credentials(ctx, image)
	if err != nil {
		return "", err
	}
	login, err := credentials.login(host)
	if err != nil {
		return "", err
	}
	machines, err := c.all()
	if err != nil {
		return "", err
	}
	err = fmt.Errorf("no engine can ask the registry: %w", ErrUnreachable)
	tries := 0
	for _, m := range machines {
		var digest string
		asked := m.do(ctx, func(ctx context.Context, engine *moby.Client) error {
			found, err := engine.DistributionInspect(ctx, image, moby.DistributionInspectOptions{EncodedRegistryAuth: login})
			digest = found.Descriptor.Digest.String()
			return err
		})
		switch {
		case asked == nil:
			return digest, nil
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case errors.Is(asked, ErrUnreachable):
			continue
		}
		err, tries = asked, tries+1
		if errors.Is(asked, api.ErrNotFound) || tries == registryTries {
			break
		}
	}
	return "", fmt.Errorf("image %s: %w", image, credentials.explain(ctx, host, err))
}
