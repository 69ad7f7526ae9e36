package natsresource

import "fmt"

// Key names an entry of a bucket. It is comparable.
type Key struct {
	// Bucket is the name of the bucket.
	Bucket string
	// Name is the key of the entry in it.
	Name string
}

// String returns the key as it stands in errors, such as "entry home of bucket routes".
func (k Key) String() string { return fmt.Sprintf("entry %s of bucket %s", k.Name, k.Bucket) }
