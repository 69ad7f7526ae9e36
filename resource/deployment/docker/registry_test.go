package docker_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

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
