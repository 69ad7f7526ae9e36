package docker

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"
	"github.com/moby/moby/api/types/jsonstream"
	"github.com/moby/moby/api/types/registry"
	moby "github.com/moby/moby/client"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

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

// ResolveDigest implements api.ImageClient. As engines do, it asks registries on this machine without TLS.
func (c *Client) ResolveDigest(ctx context.Context, image string) (string, error) {
	credentials, host, err := c.credentials(ctx, image)
	if err != nil {
		return "", err
	}
	ref, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return "", fmt.Errorf("read image %q: %w", image, err)
	}
	repository, err := remote.NewRepository(ref.Name())
	if err != nil {
		return "", fmt.Errorf("read image %q: %w", image, err)
	}
	repository.PlainHTTP = loopback(host)
	repository.Client = &auth.Client{
		Client: &http.Client{Transport: c.config.RegistryTransport},
		// It is for the registry alone, and not for those that it redirects to.
		Credential: auth.StaticCredential(repository.Reference.Registry, auth.Credential{
			Username: credentials.Username, Password: string(credentials.Password), AccessToken: string(credentials.Token),
		}),
	}
	version := "latest"
	switch v := ref.(type) {
	case reference.Digested:
		version = v.Digest().String()
	case reference.Tagged:
		version = v.Tag()
	}
	found, err := repository.Resolve(ctx, version)
	if errors.Is(err, errdef.ErrNotFound) {
		return "", fmt.Errorf("image %s: %w: %w", image, api.ErrNotFound, hide(ctx, err, credentials.secrets()...))
	}
	if err != nil {
		return "", fmt.Errorf("image %s: %w", image, credentials.explain(ctx, host, err))
	}
	return found.Digest.String(), nil
}

// loopback tells whether a registry is on this machine.
func loopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || err == nil && a.IsLoopback()
}
