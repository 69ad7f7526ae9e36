// Package plural guesses what the resource of a kind is called, where neither a definition nor an API server tells.
package plural

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Of returns the guess of Kubernetes, but for kinds such as Gateway, of which that makes gatewaies. It stays a guess: a definition may
// say anything else.
func Of(kind schema.GroupVersionKind) schema.GroupVersionResource {
	plural, singular := meta.UnsafeGuessKindToResource(kind)
	if stem, ok := strings.CutSuffix(singular.Resource, "y"); ok && stem != "" && strings.ContainsAny(stem[len(stem)-1:], "aeiou") {
		plural.Resource = singular.Resource + "s"
	}
	return plural
}
