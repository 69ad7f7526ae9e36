package machines

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
)

// credentials returns what a registry asks for, from the Secret of a namespace. Without the Secret, or an entry in it, it is asked
// without.
func credentials(reader client.Reader, secret client.ObjectKey) func(context.Context, string) (docker.Credentials, error) {
	name := fmt.Sprintf("Secret %s in namespace %s", secret.Name, secret.Namespace)
	return func(ctx context.Context, registry string) (docker.Credentials, error) {
		s := &corev1.Secret{}
		err := reader.Get(ctx, secret, s)
		if client.IgnoreNotFound(err) != nil {
			return docker.Credentials{}, fmt.Errorf("read %s: %w", name, err)
		}
		if err != nil {
			return docker.Credentials{Hint: fmt.Sprintf("make %s, of type %s, with an entry for it", name, corev1.SecretTypeDockerConfigJson)}, nil
		}
		found, err := credentialsIn(s.Data[corev1.DockerConfigJsonKey], registry)
		if err != nil {
			return docker.Credentials{}, fmt.Errorf("%s has no %s that can be read; kubectl create secret docker-registry makes one that can",
				name, corev1.DockerConfigJsonKey)
		}
		found.Hint = "it is that of " + name
		if found == (docker.Credentials{Hint: found.Hint}) {
			found.Hint = name + " has no entry for it"
		}
		return found, nil
	}
}

// dockerConfig is the part of a Docker client's configuration that is about credentials.
type dockerConfig struct {
	Auths map[string]struct {
		Username      string `json:"username"`
		Password      string `json:"password"`
		Auth          string `json:"auth"`
		RegistryToken string `json:"registrytoken"`
	} `json:"auths"`
}

// credentialsIn returns the credentials for a registry, or nothing. Of several entries for it, which clients of other kinds tell apart
// by a path, it takes the one without, or else the first by name. The error may quote what is secret.
func credentialsIn(data []byte, registry string) (docker.Credentials, error) {
	var config dockerConfig
	if err := json.Unmarshal(data, &config); err != nil {
		return docker.Credentials{}, err
	}
	servers := slices.DeleteFunc(slices.Sorted(maps.Keys(config.Auths)), func(server string) bool { return hostOf(server) != registry })
	if len(servers) == 0 {
		return docker.Credentials{}, nil
	}
	auth, exact := config.Auths[registry]
	if !exact {
		auth = config.Auths[servers[0]]
	}
	found := docker.Credentials{Username: auth.Username, Password: api.Hidden(auth.Password), Token: api.Hidden(auth.RegistryToken)}
	if auth.Auth == "" {
		return found, nil
	}
	// Some leave out the padding.
	text, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(auth.Auth, "="))
	if err != nil {
		return docker.Credentials{}, err
	}
	name, password, ok := strings.Cut(string(text), ":")
	if !ok {
		return docker.Credentials{}, errors.New("auth is not user:password")
	}
	found.Username, found.Password = name, api.Hidden(password)
	return found, nil
}

// hostOf returns the registry that an entry is for. That of Docker's own registry is an address of an older protocol.
func hostOf(server string) string {
	_, rest, ok := strings.Cut(server, "://")
	if !ok {
		rest = server
	}
	host, _, _ := strings.Cut(rest, "/")
	if host == "index.docker.io" || host == "registry-1.docker.io" {
		return "docker.io"
	}
	return host
}
