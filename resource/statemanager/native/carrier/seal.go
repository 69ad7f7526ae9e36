package carrier

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Seal returns what stands for a fingerprint in what is kept of a service on a cluster: a random salt, a dot, and a hash of both. Each call
// returns another one.
func Seal(fingerprint string) string {
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // it never fails
	return hex.EncodeToString(salt) + "." + digest(salt, fingerprint)
}

// IsSealOf tells whether a text is a seal of a fingerprint.
func IsSealOf(seal, fingerprint string) bool {
	encoded, sum, ok := strings.Cut(seal, ".")
	salt, err := hex.DecodeString(encoded)
	return ok && err == nil && hmac.Equal([]byte(sum), []byte(digest(salt, fingerprint)))
}

// Unsalted returns the part of a seal that may be shown to those who must not know the service's values: without the salt, nobody can try
// them out.
func Unsalted(seal string) string {
	_, sum, _ := strings.Cut(seal, ".")
	return sum
}

// digest is 32 hexadecimal digits.
func digest(salt []byte, fingerprint string) string {
	mac := hmac.New(sha256.New, salt)
	_, _ = mac.Write([]byte(fingerprint))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// Put tells whether what was put onto a cluster with a seal is the service as it should be.
func (s *Service) Put(seal string) bool { return IsSealOf(seal, s.Fingerprint) }

// Opened returns Found with the fingerprint of the service, if that was put there.
func (f *Found) Opened(service *Service) *Found {
	if f != nil && service.Put(f.Seal) {
		f.Fingerprint = service.Fingerprint
	}
	return f
}
