// Package absent has objects applied that must not be there yet.
package absent

// Version is a resource version that no stored object has: the first write of an etcd gives 2. Applied with it, an object is created if
// there is none, and a conflict if there is one.
const Version = "1"
