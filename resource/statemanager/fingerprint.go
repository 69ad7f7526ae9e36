package statemanager

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Fingerprint returns a hash of values, for v1alpha1.LastDeployed: the same for values that are the same as JSON. It is 32
// hexadecimal digits, short enough for a label. Values that are secret should be hashed together with something that is not
// known outside, such as the UID of the set, so that nobody can try them out.
func Fingerprint(values ...any) (string, error) {
	hash := sha256.New()
	encoder := json.NewEncoder(hash)
	for i, value := range values {
		if err := encoder.Encode(value); err != nil {
			return "", fmt.Errorf("fingerprint of value %d: %w", i, err)
		}
	}
	return hex.EncodeToString(hash.Sum(nil)[:16]), nil
}
