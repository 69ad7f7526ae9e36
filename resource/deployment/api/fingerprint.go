package api

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"strings"
)

// fingerprinted begins every fingerprint.
const fingerprinted = "fingerprint:"

// saltLength is that of the salt of a fingerprint, in bytes.
const saltLength = 16

// Fingerprint returns a text that stands for a secret one in records: SameText knows it again, and it can't be read from it. Each call
// returns another one. The fingerprint of a fingerprint is that itself.
func Fingerprint(text string) string {
	if IsFingerprint(text) {
		return text
	}
	salt := make([]byte, saltLength)
	_, _ = rand.Read(salt) // it never fails
	return fingerprinted + base64.RawURLEncoding.EncodeToString(append(salt, digest(salt, text)...))
}

func digest(salt []byte, text string) []byte {
	mac := hmac.New(sha256.New, salt)
	_, _ = mac.Write([]byte(text))
	return mac.Sum(nil)
}

// read returns the salt and the digest of a fingerprint, or false for another text.
func read(text string) (salt, sum []byte, ok bool) {
	encoded, ok := strings.CutPrefix(text, fingerprinted)
	if !ok {
		return nil, nil, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil || len(raw) != saltLength+sha256.Size {
		return nil, nil, false
	}
	return raw[:saltLength], raw[saltLength:], true
}

// IsFingerprint tells whether a text is a fingerprint.
func IsFingerprint(text string) bool {
	_, _, ok := read(text)
	return ok
}

// SameText tells whether two texts are the same, each of which may be a fingerprint. Two different fingerprints may be of the same
// text: that can't be told, and is no.
func SameText(a, b string) bool {
	if a == b {
		return true
	}
	if salt, sum, ok := read(a); ok {
		return hmac.Equal(sum, digest(salt, b))
	}
	if salt, sum, ok := read(b); ok {
		return hmac.Equal(sum, digest(salt, a))
	}
	return false
}

// Fingerprinted returns the specification with fingerprints for all that is secret, as records of what runs have it: the values of
// SecretEnv, the contents of configs, and the options of log and volume drivers.
func (s *ServiceSpec) Fingerprinted() ServiceSpec {
	out := s.Clone()
	for name, value := range out.Container.SecretEnv {
		out.Container.SecretEnv[name] = Hidden(Fingerprint(string(value)))
	}
	for i := range out.Configs {
		out.Configs[i].Content = Hidden(Fingerprint(string(out.Configs[i].Content)))
	}
	if d := out.Container.LogDriver; d != nil {
		fingerprintAll(d.Options)
	}
	for i := range out.Volumes {
		if d := out.Volumes[i].Driver; d != nil {
			fingerprintAll(d.Options)
		}
	}
	return out
}

// Fingerprints returns values with the fingerprint of each.
func Fingerprints(values map[string]string) map[string]string {
	values = maps.Clone(values)
	fingerprintAll(values)
	return values
}

func fingerprintAll(values map[string]string) {
	for k, v := range values {
		values[k] = Fingerprint(v)
	}
}
