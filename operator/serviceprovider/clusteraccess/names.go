package clusteraccess

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// ProviderLabel is the name of the service provider that asks.
	ProviderLabel = "clusters.operatorkit.io/provider"
	// ObjectLabel is a hash that stands for the object that something is asked for.
	ObjectLabel = "clusters.operatorkit.io/object"
	// ObjectAnnotation names that object: namespace/name.
	ObjectAnnotation = "clusters.operatorkit.io/object"
	// AccessLabel is the id of the access.
	AccessLabel = "clusters.operatorkit.io/access"
)

// maxReadable is how much of a name stays readable before the hash, in bytes.
const maxReadable = 60

func hash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// objectHash is the value of ObjectLabel.
func objectHash(request reconcile.Request) string { return hash(request.Namespace, request.Name) }

// key names the requests of an access, the ClusterRequest and the AccessRequest.
func (c *Config) key(request reconcile.Request, id string) client.ObjectKey {
	readable := strings.ReplaceAll(c.Provider+"-"+id+"-"+request.Name, ".", "-")
	if len(readable) > maxReadable {
		readable = readable[:maxReadable]
	}
	name := strings.TrimRight(readable, "-") + "-" + hash(c.Provider, id, request.Namespace, request.Name)
	return client.ObjectKey{Namespace: c.Namespace, Name: name}
}

// meta is the metadata of both.
func (c *Config) meta(request reconcile.Request, id string) metav1.ObjectMeta {
	key := c.key(request, id)
	return metav1.ObjectMeta{
		Namespace: key.Namespace, Name: key.Name,
		Labels:      map[string]string{ProviderLabel: c.Provider, ObjectLabel: objectHash(request), AccessLabel: id},
		Annotations: map[string]string{ObjectAnnotation: request.String()},
	}
}

// requestOf returns the object that something was asked for; false for what does not say.
func requestOf(obj client.Object) (reconcile.Request, bool) {
	namespace, name, ok := strings.Cut(obj.GetAnnotations()[ObjectAnnotation], "/")
	if !ok || name == "" || strings.Contains(name, "/") {
		return reconcile.Request{}, false
	}
	return reconcile.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}, true
}
