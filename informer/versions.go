package informer

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// IsOlder tells whether a resource version is older than another one of the same kind. Only numbers can be compared (KEP-5504): of
// anything else it is not known, and the answer is false.
func IsOlder(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

// newest is the newest resource version that a server has shown of one namespace. It is safe for concurrent use.
type newest struct {
	mu      sync.Mutex
	version string
}

// saw notes that a version was shown.
func (n *newest) saw(version string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.version == "" || IsOlder(n.version, version) {
		n.version = version
	}
}

// accept notes the version of a whole listing, or returns an error if something newer was shown before.
func (n *newest) accept(version string) error {
	n.mu.Lock()
	seen := n.version
	n.mu.Unlock()
	if IsOlder(version, seen) {
		return fmt.Errorf("the listing is of resource version %s, and %s was seen before: the API server lags, or was set back to a backup; "+
			"in the latter case restart the operator", version, seen)
	}
	n.saw(version)
	return nil
}
