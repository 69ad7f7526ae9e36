package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

func TestAFingerprintStandsForItsText(t *testing.T) {
	for _, text := range []string{"", "secret", "fingerprint:", strings.Repeat("x", 1000)} {
		a, b := api.Fingerprint(text), api.Fingerprint(text)
		if !api.IsFingerprint(a) || api.Fingerprint(a) != a {
			t.Errorf("%q is not the fingerprint that it should be", a)
		}
		if a == b || api.SameText(a, b) {
			t.Errorf("two fingerprints of one text tell that they are: %q, %q", a, b)
		}
		if !api.SameText(a, text) || !api.SameText(text, a) || api.SameText(a, text+"!") {
			t.Errorf("the fingerprint of %q does not know its text", text)
		}
	}
	if api.IsFingerprint("secret") || !api.SameText("x", "x") || api.SameText("x", "y") {
		t.Error("texts are taken for fingerprints")
	}
}

func TestARecordHasNothingSecret(t *testing.T) {
	s := api.ServiceSpec{
		Container: api.ContainerSpec{
			Image: "app", SecretEnv: map[string]api.Hidden{"A": "psst-1"}, LogDriver: &api.LogDriver{Name: "x", Options: map[string]string{"token": "psst-2"}},
		},
		Volumes: []api.VolumeSpec{{Name: "v", Driver: &api.VolumeDriver{Name: "x", Options: map[string]string{"o": "psst-3"}}}},
		Configs: []api.ConfigSpec{{Name: "c", Content: "psst-4"}},
	}
	before := s.Clone()
	record := s.Fingerprinted()
	text, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "psst") {
		t.Errorf("the record has a secret: %s", text)
	}
	if !s.Equal(before) {
		t.Error("the specification was changed")
	}
}
