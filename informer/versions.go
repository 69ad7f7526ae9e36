package informer

import "k8s.io/apimachinery/pkg/util/resourceversion"

// IsOlder reports whether a resource version is older than another one of the same kind. Only
// numbers can be compared (KEP-5504): for anything else it returns false.
func IsOlder(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}
