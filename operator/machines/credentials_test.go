package machines

import (
	"encoding/base64"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/deployment/docker"
)

func TestCredentialsAreThoseOfTheEntryForTheRegistry(t *testing.T) {
	// The letters are chosen so that there is padding.
	encoded := base64.StdEncoding.EncodeToString([]byte("ann:pass:word"))
	unpadded := base64.RawStdEncoding.EncodeToString([]byte("ann:pass:word"))
	if encoded == unpadded {
		t.Fatal("there is no padding")
	}
	ann := docker.Credentials{Username: "ann", Password: "pass:word"}
	for name, test := range map[string]struct {
		config, registry string
		want             docker.Credentials
	}{
		"auth":                   {`{"auths": {"example.com": {"auth": "` + encoded + `"}}}`, "example.com", ann},
		"auth without padding":   {`{"auths": {"example.com": {"auth": "` + unpadded + `"}}}`, "example.com", ann},
		"auth before the others": {`{"auths": {"example.com": {"auth": "` + encoded + `", "username": "bob", "password": "x"}}}`, "example.com", ann},
		"user and password":      {`{"auths": {"example.com": {"username": "ann", "password": "pass:word"}}}`, "example.com", ann},
		"a token":                {`{"auths": {"example.com": {"registrytoken": "abc"}}}`, "example.com", docker.Credentials{Token: "abc"}},
		"a port":                 {`{"auths": {"example.com:5000": {"auth": "` + encoded + `"}}}`, "example.com:5000", ann},
		"another port":           {`{"auths": {"example.com:5000": {"auth": "` + encoded + `"}}}`, "example.com", docker.Credentials{}},
		"another registry":       {`{"auths": {"example.com": {"auth": "` + encoded + `"}}}`, "example.org", docker.Credentials{}},
		"no entries":             {`{}`, "example.com", docker.Credentials{}},
		"an address":             {`{"auths": {"https://example.com/v2/": {"auth": "` + encoded + `"}}}`, "example.com", ann},
		"Docker's own registry":  {`{"auths": {"https://index.docker.io/v1/": {"auth": "` + encoded + `"}}}`, "docker.io", ann},
		"its other name":         {`{"auths": {"registry-1.docker.io": {"auth": "` + encoded + `"}}}`, "docker.io", ann},
		"its short name":         {`{"auths": {"docker.io": {"auth": "` + encoded + `"}}}`, "docker.io", ann},
		"several, one without path": {`{"auths": {
			"https://r.example.com": {"username": "bob"}, "r.example.com": {"auth": "` + encoded + `"}}}`, "r.example.com", ann},
		"several with paths": {`{"auths": {
			"example.com/c": {"username": "bob"}, "example.com/a": {"auth": "` + encoded + `"}, "example.com/b": {"username": "eve"}}}`, "example.com", ann},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := credentialsIn([]byte(test.config), test.registry)
			if err != nil {
				t.Fatal(err)
			}
			if got != test.want {
				t.Errorf("got user %q, password %q, token %q", got.Username, string(got.Password), string(got.Token))
			}
		})
	}
	for name, config := range map[string]string{
		"nothing":                ``,
		"no JSON":                `example.com: ann`,
		"no base64":              `{"auths": {"example.com": {"auth": "ann:pass"}}}`,
		"a user and no password": `{"auths": {"example.com": {"auth": "` + base64.StdEncoding.EncodeToString([]byte("ann")) + `"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := credentialsIn([]byte(config), "example.com"); err == nil {
				t.Errorf("got user %q", got.Username)
			}
		})
	}
}

func TestNothingOfSecretsIsKept(t *testing.T) {
	got, err := onlyVersion(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "tokens", UID: "1", ResourceVersion: "2", Labels: map[string]string{"a": "b"},
		Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: `{"data": {"TOKEN": "czNjcjN0"}}`},
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "tokens", UID: "1", ResourceVersion: "2"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
