package deployment_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

func TestResolvingTwiceIsResolvingOnce(t *testing.T) {
	s := newSimulation(1)
	s.digests["docker.example.com/team/web_app:v1"] = "sha256:" + strings.Repeat("a", 64)
	r := &deployment.ServiceSpecResolver{ClusterDomain: "example.com", ImageResolver: &deployment.ImageDigestResolver{Client: s}}
	spec := api.ServiceSpec{
		Container: api.ContainerSpec{Image: "docker.example.com/team/web_app:v1"},
		Ports:     []api.PortSpec{{ContainerPort: 80}, {ContainerPort: 81, Protocol: api.ProtocolHTTP, Hostname: "a.example.com"}},
	}
	given := spec.Clone()
	once, err := r.Resolve(spec)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(given, spec); diff != "" {
		t.Errorf("the specification was changed:\n%s", diff)
	}
	twice, err := r.Resolve(once)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(once, twice); diff != "" {
		t.Errorf("(-once +twice):\n%s", diff)
	}
	if !strings.HasPrefix(once.Name, "web-app-") || once.Ports[0].Hostname != once.Name+".example.com" || once.Ports[1].Hostname != "a.example.com" {
		t.Errorf("got %s, %v", once.Name, once.Ports)
	}
	if want := spec.Container.Image + "@sha256:" + strings.Repeat("a", 64); once.Container.Image != want {
		t.Errorf("the image is %s", once.Container.Image)
	}
}

func TestPortsNeedADomain(t *testing.T) {
	for hostname, want := range map[string]string{"": "web.example.com", "www": "www.example.com", "localhost": "localhost", "a.test": "a.test"} {
		s := newSimulation(1)
		s.domain = ""
		spec := web("app:v1", 0, func(s *api.ServiceSpec) { s.Ports = []api.PortSpec{{ContainerPort: 80, Hostname: hostname}} })
		_, err := deployment.NewDeployment(s, spec, nil).Plan(t.Context())
		if whole := hostname == want; errors.Is(err, deployment.ErrNoClusterDomain) == whole {
			t.Errorf("%q without a domain: %v", hostname, err)
		}
		resolved, err := (&deployment.ServiceSpecResolver{ClusterDomain: "example.com"}).Resolve(spec)
		if err != nil || resolved.Ports[0].Hostname != want {
			t.Errorf("%q is %v, %v, want %s", hostname, resolved.Ports, err, want)
		}
	}
}

func TestGeneratedNamesFollowTheRuleForNames(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		image := rapid.StringMatching(`([a-z0-9]{1,9}\.[a-z]{2,5}(:[0-9]{2,4})?/)?([a-z0-9]{1,9}/){0,2}[a-z0-9]{1,30}(([._]|__|-{1,9})[a-z0-9]{1,40}){0,3}`).Draw(r, "image")
		name, err := deployment.GenerateServiceName(image)
		if err != nil {
			// Some of these are too long for a reference.
			r.Skip(err)
		}
		if faults := validation.IsDNS1123Label(name); len(faults) > 0 {
			r.Errorf("%s: %v", name, faults)
		}
		tagged, err := deployment.GenerateServiceName(image + ":v2")
		if err != nil || tagged != name {
			r.Errorf("with a tag it is %q, not %q: %v", tagged, name, err)
		}
	})
	a, _ := deployment.GenerateServiceName("team-a/web")
	b, _ := deployment.GenerateServiceName("team-b/web")
	if a == b {
		t.Errorf("two images have the name %s", a)
	}
	if _, err := deployment.GenerateServiceName("Not An Image"); err == nil {
		t.Error("what is no image has a name")
	}
}

func TestImageDigests(t *testing.T) {
	old, recent := "sha256:"+strings.Repeat("1", 64), "sha256:"+strings.Repeat("2", 64)
	registry := "sha256:" + strings.Repeat("3", 64)
	at := func(sec int64) metav1.Time { return metav1.Unix(sec, 0) }
	pulled := func(digest string, created int64) api.Image {
		return api.Image{ID: digest, Tags: []string{"app:v1"}, Digests: []string{"other@" + registry, "app@" + digest}, Created: at(created)}
	}
	for _, tc := range []struct {
		name, image, policy string
		on                  [2][]api.Image
		want                string
		err                 error
	}{
		{name: "always", image: "app:v1", policy: "always", on: [2][]api.Image{{pulled(old, 1)}}, want: "app:v1@" + registry},
		{name: "missing, on one machine", image: "app:v1", policy: "missing", on: [2][]api.Image{{pulled(old, 1)}}, want: "app:v1@" + old},
		{name: "missing, the newest", image: "app:v1", policy: "missing", on: [2][]api.Image{{pulled(old, 1)}, {pulled(recent, 2)}}, want: "app:v1@" + recent},
		{name: "missing, written in full", image: "docker.io/library/app:v1", policy: "", on: [2][]api.Image{{pulled(old, 1)}}, want: "docker.io/library/app:v1@" + old},
		{name: "missing, on none", image: "app:v1", policy: "missing", want: "app:v1@" + registry},
		{name: "never, on one machine", image: "app:v1", policy: "never", on: [2][]api.Image{nil, {pulled(old, 1)}}, want: "app:v1@" + old},
		{name: "never, on none", image: "app:v1", policy: "never", err: deployment.ErrImageNotOnMachines},
		{name: "built there", image: "app:v1", policy: "never", on: [2][]api.Image{{{Tags: []string{"app:v1"}}}}, want: "app:v1"},
		{name: "pinned", image: "app@" + old, policy: "always", want: "app@" + old},
		{name: "not in the registry", image: "app:v9", policy: "always", err: api.ErrNotFound},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSimulation(3)
			s.digests["app:v1"] = registry
			s.machine("m3").unreachable = true
			for i, images := range tc.on {
				s.machines[i].images = images
			}
			r := &deployment.ImageDigestResolver{Ctx: t.Context(), Client: s}
			have, err := r.Resolve(tc.image, tc.policy)
			if have != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("got %q, %v", have, err)
			}
		})
	}
	if _, err := (&deployment.ImageDigestResolver{Client: newSimulation(1)}).Resolve("app:v1", "sometimes"); err == nil {
		t.Error("an unknown policy was taken")
	}
}
