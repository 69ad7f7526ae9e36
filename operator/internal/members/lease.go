package members

import (
	"encoding/json"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/operator/internal/ring"
)

// The marks of Leases.
const (
	// TableAnnotation holds the table of a ring, on its Lease.
	TableAnnotation = "operatorkit.io/shards"
	// MemberAnnotation holds what a replica says of itself, on its Lease.
	MemberAnnotation = "operatorkit.io/shard-member"
	// RingLabel names the ring of a replica, by a hash.
	RingLabel = "operatorkit.io/shards"
)

// Told is what a replica says of itself.
type Told struct {
	ring.Member `json:",inline"`
	// Name is that of the member.
	Name string `json:"name"`
	// Page is where its page is.
	Page Page `json:"page,omitzero"`
}

// Page is where the page of a replica is.
type Page struct {
	// URL has the scheme and the host with the port. It is empty if there is no page.
	URL string `json:"url,omitempty"`
	// Host is the name of the machine or the Pod that alone reaches it. It is empty if others do.
	Host string `json:"host,omitempty"`
	// Certificate is the SHA-256 of its certificate in hexadecimal digits, with https.
	Certificate string `json:"certificate,omitempty"`
}

// leaseOf is the name of the Lease of a member.
func leaseOf(ring, member string) string { return ring + "-" + short(member) }

// short is a name of 16 letters and digits for another one that can be of any length.
func short(name string) string { return ring.HashOf(name).String()[2:] }

// ofReplicas selects the Leases of replicas of a ring.
func ofReplicas(ring string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: RingLabel + "=" + short(ring)}
}

// tableOf reads the table of a ring.
func tableOf(lease *coordinationv1.Lease) (ring.Table, error) {
	var t ring.Table
	err := json.Unmarshal([]byte(lease.Annotations[TableAnnotation]), &t)
	if err == nil {
		err = t.Validate()
	}
	if err != nil {
		return t, fmt.Errorf("read the annotation %s of lease %s/%s (delete the lease, and it is made anew): %w", TableAnnotation, lease.Namespace, lease.Name, err)
	}
	return t, nil
}

// toldBy reads what a replica says of itself.
func toldBy(lease *coordinationv1.Lease) (Told, error) {
	var told Told
	if err := json.Unmarshal([]byte(lease.Annotations[MemberAnnotation]), &told); err != nil {
		return told, fmt.Errorf("read the annotation %s of lease %s/%s: %w", MemberAnnotation, lease.Namespace, lease.Name, err)
	}
	return told, nil
}

// annotate writes v as an annotation.
func annotate(lease *coordinationv1.Lease, name string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write the annotation %s of lease %s: %w", name, lease.Name, err)
	}
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, name, string(text))
	return nil
}
