package crdclient_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cenkalti/backoff/v4"
	"github.com/giantswarm/micrologger"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/crdclient"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// fields returns the fields of a definition in the cluster, sorted.
func fields(t *testing.T, c client.Client, crd *apiextensionsv1.CustomResourceDefinition) string {
	t.Helper()
	return strings.Join(slices.Sorted(maps.Keys(live(t, c, crd).Spec.Versions[0].Schema.OpenAPIV3Schema.Properties)), " ")
}

// clientOf returns a client under test with a configuration of its own, for a user with these
// rights, or for one with all.
func clientOf(t *testing.T, config crdclient.Config, user string, rules ...rbacv1.PolicyRule) *crdclient.Client {
	t.Helper()
	instance := operatortest.Start(t)
	rest := instance.RESTConfig()
	rest.Impersonate.UserName = user
	if len(rules) > 0 {
		instance.Permit(t, user, rules...)
	}
	config.Client = operatortest.NewClient(t, rest, runtime.NewScheme())
	return newClient(t, config)
}

// newClient returns a client under test that logs to the test.
func newClient(t *testing.T, config crdclient.Config) *crdclient.Client {
	t.Helper()
	logger, err := micrologger.New(micrologger.Config{IOWriter: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	config.Logger = logger
	crds, err := crdclient.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return crds
}

func TestAnOlderVersionNeverPutsItsDefinitionBack(t *testing.T) {
	crds, c, _ := newClients(t, 0)
	older, newer := definition(t, "color", "size"), definition(t, "color", "material")
	cleanUp(t, c, older)
	ensure(t, crds, older)
	ensure(t, crds, newer)
	was := live(t, c, newer).ResourceVersion
	ensure(t, crds, older)
	if got := fields(t, c, newer); got != "color material" || live(t, c, newer).ResourceVersion != was {
		t.Errorf("the older version has changed the definition: it has %s", got)
	}

	// Force restores the older one on request, and then the newer one restores its own.
	ensure(t, clientOf(t, crdclient.Config{Force: true}, ""), older)
	if got := fields(t, c, older); got != "color size" {
		t.Errorf("it was put back by force, and has %s", got)
	}
	ensure(t, crds, newer)
	if got := fields(t, c, newer); got != "color material" {
		t.Errorf("the newer version has left it as %s", got)
	}
}

func TestAnOlderVersionDoesNotTakeA404ForNoDefinition(t *testing.T) {
	crds, c, _ := newClients(t, 0)
	older, newer := definition(t, "color", "size"), definition(t, "color", "material")
	cleanUp(t, c, newer)
	ensure(t, crds, older)
	ensure(t, crds, newer)
	was := live(t, c, newer).ResourceVersion

	config := operatortest.Start(t).RESTConfig()
	p := &proxy{path: "/customresourcedefinitions/" + newer.Name}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		p.next = next
		return p
	})
	ensure(t, newClient(t, crdclient.Config{Client: operatortest.NewClient(t, config, runtime.NewScheme())}), older)
	if !p.answered.Load() {
		t.Error("nobody asked the proxy for the definition")
	}
	if got := fields(t, c, newer); got != "color material" || live(t, c, newer).ResourceVersion != was {
		t.Errorf("the older version has changed the definition: it has %s", got)
	}
}

// proxy gives one wrong answer, the first time that it is asked for a path.
type proxy struct {
	next     http.RoundTripper
	path     string
	answered atomic.Bool
}

func (p *proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, p.path) || p.answered.Swap(true) {
		return p.next.RoundTrip(r)
	}
	return &http.Response{
		Status: "404 Not Found", StatusCode: http.StatusNotFound, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"text/plain"}}, Body: io.NopCloser(strings.NewReader("404 page not found")),
	}, nil
}

// Definitions are applied in this way before a new version is rolled out, while replicas of the
// previous one may restart.
func TestWhatWasAppliedByForceIsNewerThanWhatStoodThere(t *testing.T) {
	crds, c, _ := newClients(t, 0)
	oldest, older, newer := definition(t, "color", "size"), definition(t, "color", "shape"), definition(t, "color", "material")
	cleanUp(t, c, older)
	ensure(t, crds, oldest)
	ensure(t, crds, older)
	force := clientOf(t, crdclient.Config{Force: true}, "")
	ensure(t, force, newer)
	for _, starts := range []*crdclient.Client{crds, clientOf(t, crdclient.Config{ReadOnly: true}, "")} {
		ensure(t, starts, older)
		ensure(t, starts, oldest)
	}
	if got := fields(t, c, newer); got != "color material" {
		t.Errorf("an older version has made it %s", got)
	}

	// A definition restored by force is still newer than the earlier ones.
	ensure(t, force, older)
	ensure(t, crds, oldest)
	if got := fields(t, c, older); got != "color shape" {
		t.Errorf("the oldest version has made it %s", got)
	}
	ensure(t, crds, newer)
	if got := fields(t, c, newer); got != "color material" {
		t.Errorf("the newest version has left it as %s", got)
	}
}

func TestADefinitionOfSomebodyElseIsLeftAsLongAsItSaysAllThatIsWanted(t *testing.T) {
	crds, c, _ := newClients(t, 0)
	theirs := definition(t, "color", "size")
	cleanUp(t, c, theirs)
	if err := c.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	first := definition(t, "color")
	ensure(t, crds, first)
	got := live(t, c, theirs)
	if got.Generation != 1 || len(got.Annotations) > 0 {
		t.Errorf("generation %d, annotations %v: it was written", got.Generation, got.Annotations)
	}

	// The definition that they have applied counts as the earlier one, even if one of ours starts
	// with the next.
	ensure(t, crds, definition(t, "color", "material"))
	ensure(t, crds, definition(t, "color", "size"))
	if got := fields(t, c, theirs); got != "color material" {
		t.Errorf("it has %s", got)
	}
}

func TestADefinitionWithLimitsIsThereOnceItWasApplied(t *testing.T) {
	crds, c, _ := newClients(t, 0)
	limited := func(least float64) *apiextensionsv1.CustomResourceDefinition {
		crd := definition(t, "color")
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["copies"] = apiextensionsv1.JSONSchemaProps{
			Type: "integer", Minimum: &least, Maximum: new(10.0), Default: &apiextensionsv1.JSON{Raw: []byte("5")},
		}
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["share"] = apiextensionsv1.JSONSchemaProps{Type: "number", Maximum: new(0.5)}
		return crd
	}
	cleanUp(t, c, limited(1))
	ensure(t, crds, limited(1))
	reader := clientOf(t, crdclient.Config{ReadOnly: true}, "")
	ensure(t, reader, limited(1))
	err := reader.EnsureCreated(t.Context(), limited(2), &backoff.StopBackOff{})
	if !crdclient.IsOutdated(err) || !strings.Contains(err.Error(), "properties.copies.minimum differs") {
		t.Errorf("with another limit: got error %v", err)
	}
}

func TestANewerDefinitionThatHasNoUseForAnOlderVersionIsAnError(t *testing.T) {
	crds, c, _ := newClients(t, 0)
	older, newer := definition(t, "color"), definition(t, "color")
	newer.Spec.Versions = append(newer.Spec.Versions, *newer.Spec.Versions[0].DeepCopy())
	newer.Spec.Versions[0].Served, newer.Spec.Versions[0].Storage, newer.Spec.Versions[1].Name = false, false, "v2"
	cleanUp(t, c, older)
	ensure(t, crds, older)
	ensure(t, crds, newer)
	err := crds.EnsureCreated(t.Context(), older, &backoff.StopBackOff{})
	if !crdclient.IsOutdated(err) || !strings.Contains(err.Error(), "does not serve v1 any more") {
		t.Errorf("got error %v", err)
	}
}

func TestWhoMayNotWriteWorksWithWhatOthersHaveApplied(t *testing.T) {
	_, c, _ := newClients(t, 0)
	crd, next := definition(t, "color"), definition(t, "color", "size")
	cleanUp(t, c, crd)
	reads := rbacv1.PolicyRule{APIGroups: []string{apiextensionsv1.GroupName}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"get"}}
	all := map[string]*crdclient.Client{
		"a reader":                    clientOf(t, crdclient.Config{}, "crd-reader", reads),
		"one without rights":          clientOf(t, crdclient.Config{}, "crd-nobody"),
		"a reader that only looks":    clientOf(t, crdclient.Config{ReadOnly: true}, "crd-reader", reads),
		"somebody who may but is not": clientOf(t, crdclient.Config{ReadOnly: true}, ""),
	}
	for name, crds := range all {
		err := crds.EnsureCreated(t.Context(), crd, &backoff.StopBackOff{})
		if !crdclient.IsOutdated(err) || !strings.Contains(err.Error(), "somebody has to apply it who may") {
			t.Errorf("%s, without a definition: got error %v", name, err)
		}
	}
	ensure(t, clientOf(t, crdclient.Config{}, ""), crd)
	was := live(t, c, crd).ResourceVersion
	for name, crds := range all {
		ensure(t, crds, crd)
		err := crds.EnsureCreated(t.Context(), next, &backoff.StopBackOff{})
		if name == "one without rights" {
			// It sees that the version is served, and no more than that.
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if want := "spec.versions[v1].schema.openAPIV3Schema.properties.size differs"; !crdclient.IsOutdated(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s, with a newer definition: got error %v, want %q", name, err, want)
		}
	}
	if got := live(t, c, crd).ResourceVersion; got != was {
		t.Error("the definition was written")
	}
}

// Versions of an operator are rolled out one after the other, and older ones restart at any time.
// Each rollout has its own definition: under load, API servers may take minutes to delete one.
func TestTheNewestOfAllVersionsHasItsDefinitionWhoeverStartsAgain(t *testing.T) {
	crds, c, _ := newClients(t, 0)
	rollouts := 0
	rapid.Check(t, func(rt *rapid.T) {
		rollouts++
		definitionOf := func(version int) *apiextensionsv1.CustomResourceDefinition {
			crd := definition(t, fmt.Sprintf("f%d", version))
			crd.Spec.Group = fmt.Sprintf("n%d.%s", rollouts, crd.Spec.Group)
			crd.Name = "shelves." + crd.Spec.Group
			return crd
		}
		crd := definitionOf(0)
		defer func() {
			if err := c.Delete(context.WithoutCancel(t.Context()), crd); err != nil {
				t.Error(err)
			}
		}()
		newest := -1
		for range rapid.IntRange(2, 8).Draw(rt, "starts") {
			version := rapid.IntRange(0, newest+1).Draw(rt, "version")
			newest = max(newest, version)
			ensure(t, crds, definitionOf(version))
			if got, want := fields(t, c, crd), fmt.Sprintf("f%d", newest); got != want {
				rt.Fatalf("after a start of version %d the definition has %s, want %s", version, got, want)
			}
		}
	})
}

func TestForceAndReadOnlyContradictEachOther(t *testing.T) {
	_, err := crdclient.New(crdclient.Config{ReadOnly: true, Force: true})
	if !errors.Is(err, informer.ErrInvalidConfig) || !strings.Contains(err.Error(), "Force must not be set beside ReadOnly") {
		t.Errorf("got error %v", err)
	}
}
