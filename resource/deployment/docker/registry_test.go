package docker_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/dockertest"
)

func TestImagesComeFromRegistriesWithCredentials(t *testing.T) {
	k := newKit(t)
	server := dockertest.StartRegistry(t, "puller", "pass-word")
	host := server.Host()
	image := host + "/team/app:3"
	k.must(server.Push(k.ctx, k.engines[0], dockertest.App(image, map[string]string{"VERSION": "3"})))

	as := func(credentials docker.Credentials) *docker.Client {
		credentials.Hint = "ask the team"
		return k.client(docker.Config{
			Machines: dockertest.Machines(k.engines),
			Credentials: func(_ context.Context, registry string) (docker.Credentials, error) {
				if registry != host {
					return docker.Credentials{}, errors.New("no credentials for " + registry)
				}
				return credentials, nil
			},
		})
	}
	for who, want := range map[*docker.Client]string{
		k.cli:                    "registry " + host + " wants a login: ",
		as(docker.Credentials{}): "registry " + host + " wants a login; ask the team: ",
		as(docker.Credentials{Username: "puller", Password: "pass-words"}): "registry " + host + " refuses the login; ask the team: ",
	} {
		_, err := who.ResolveDigest(k.ctx, image)
		for _, err := range []error{err, who.PullImage(k.ctx, "engine-1", image, nil)} {
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "pass-words") {
				t.Errorf("got %v, want %q", err, want)
			}
		}
	}
	cli := as(docker.Credentials{Username: "puller", Password: "pass-word"})
	if err := cli.PullImage(k.ctx, "engine-1", host+"/team/app:absent", nil); err == nil || strings.Contains(err.Error(), "login") {
		t.Errorf("an image that is not there: %v", err)
	}
	digest, err := cli.ResolveDigest(k.ctx, image)
	k.must(err)
	if _, err := cli.ResolveDigest(k.ctx, host+"/team/app:absent"); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("an image that is not there: %v", err)
	}
	if _, err := cli.ResolveDigest(k.ctx, "elsewhere.example/app"); err == nil || !strings.Contains(err.Error(), "no credentials for elsewhere.example") {
		t.Errorf("credentials that can't be had: %v", err)
	}
	var last api.PullProgress
	k.must(cli.PullImage(k.ctx, "engine-1", image+"@"+digest, func(p api.PullProgress) { last = p }))
	if last.Current > last.Total {
		t.Errorf("progress = %+v", last)
	}
	found, err := cli.InspectImage(k.ctx, "engine-1", image+"@"+digest)
	k.must(err)
	if len(found.Digests) != 1 || !strings.HasSuffix(found.Digests[0], digest) {
		t.Errorf("image = %+v, want digest %s", found, digest)
	}
	if _, err := cli.InspectImage(k.ctx, "engine-2", image); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("an image that is not on a machine: %v", err)
	}

	// A deployment pulls what is missing.
	k.cli = cli
	s := spec(image+"@"+digest, 2)
	s.Container.PullPolicy = api.PullMissing
	var log bytes.Buffer
	d := deployment.NewDeployment(cli, s, nil)
	d.Progress = func(e deployment.ProgressEvent) { log.WriteString(e.Operation.String() + "\n") }
	_, err = d.Run(k.ctx)
	k.must(err)
	if strings.Contains(log.String(), "pass-word") {
		t.Errorf("the password is in the progress:\n%s", log.String())
	}
	k.mustBeDone(s, nil)
}

// quoting serves a registry that lets nobody in, nor does the service that it gets its tokens from: they say with what they were asked.
func quoting(t *testing.T) (host string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := r.Header.Get("Authorization")
		if given == "" {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service="registry"`, r.Host))
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		user, password, _ := r.BasicAuth()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(w, `{"errors":[{"code":"DENIED","message":%q}]}`, "not "+user+" with "+password+" in "+given)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

const hidden = "hunter2-and-more"

// R14: engines pass on what registries say.
func TestR14CredentialsForRegistriesAreInNoErrorOfAnEngine(t *testing.T) {
	k := newKit(t)
	host := quoting(t)
	for name, credentials := range map[string]docker.Credentials{"a password": {Username: "puller", Password: hidden}, "a token": {Token: hidden}} {
		t.Run(name, func(t *testing.T) {
			cli := k.client(docker.Config{
				Machines: dockertest.Machines(k.engines), Credentials: func(context.Context, string) (docker.Credentials, error) { return credentials, nil },
			})
			ctx := secretscontext.NewContext(k.ctx)
			wantHidden(t, cli.PullImage(ctx, "engine-1", host+"/team/app:3", nil))
			_, err := cli.ResolveDigest(ctx, host+"/team/app:3")
			wantHidden(t, err)
			// What else is told of the reconciliation is scrubbed of it, too.
			if text := secretscontext.Scrub(ctx, hidden); strings.Contains(text, hidden) {
				t.Errorf("told is %s", text)
			}
		})
	}
}

// R14: what an engine is sent.
func TestR14SecretsOfContainersAreInNoErrorOfAnEngine(t *testing.T) {
	k := newKit(t)
	s := spec(image1, 1)
	s.Container.SecretEnv = map[string]api.Hidden{"PASSWORD": hidden}
	s.Container.LogDriver = &api.LogDriver{Name: "json-file", Options: map[string]string{"max-size": hidden}}
	_, err := deployment.NewDeployment(k.cli, s, nil).Run(k.ctx)
	wantHidden(t, err)
}

// wantHidden wants an error that would quote a secret, and does not.
func wantHidden(t *testing.T, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), secretscontext.Redacted) {
		t.Errorf("err = %v, want one that had to be scrubbed", err)
	}
	for _, form := range []string{"hunter2", base64.StdEncoding.EncodeToString([]byte("puller:" + hidden))[12:24]} {
		if strings.Contains(fmt.Sprint(err), form) {
			t.Errorf("%q is in %v", form, err)
		}
	}
}
