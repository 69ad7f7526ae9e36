package granter

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// maxReadable is how much of a name stays readable before the hash, in bytes. With the suffixes that follow, names stay below
// the 253 that Kubernetes has for them, and that of a service account below 63, which fits a label.
const maxReadable = 40

// nameOf is the name of what is made for an AccessRequest in clusters: readable, and different for every request of every
// platform, whoever grants it.
func nameOf(request *v1alpha1.AccessRequest, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(append([]string{string(request.UID)}, parts...), "\x00")))
	readable := request.Namespace + "-" + strings.ReplaceAll(request.Name, ".", "-")
	if len(readable) > maxReadable {
		readable = readable[:maxReadable]
	}
	return strings.TrimRight(readable, "-") + "-" + hex.EncodeToString(sum[:6])
}

// secretName is the name of the Secret with the credentials of an AccessRequest.
func secretName(request string) string {
	const suffix, maxName = "-kubeconfig", 253
	if len(request)+len(suffix) <= maxName {
		return request + suffix
	}
	sum := sha256.Sum256([]byte(request))
	return strings.TrimRight(request[:maxName-len(suffix)-13], "-.") + "-" + hex.EncodeToString(sum[:6]) + suffix
}
