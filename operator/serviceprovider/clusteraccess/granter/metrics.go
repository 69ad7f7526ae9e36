package granter

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// metrics has three metrics of each access that is granted, or that still works although it should not. It is safe for concurrent use.
type metrics struct{ *granter }

var (
	grantedAt = metric("granted_timestamp_seconds", "Since when a provider has access to a cluster, 0 for one that should have none any more.")
	expiresAt = metric("expiration_timestamp_seconds", "When the credentials of an access run out, unless they are renewed; 0 for one without credentials of its own.")
	revokedAt = metric("revoked_timestamp_seconds", "Since when an access should have ended that still works in its cluster, 0 for one that is granted.")
)

func metric(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("operatorkit_access_"+name, help, []string{"provider", "namespace", "name", "cluster", "policy"}, nil)
}

// Describe implements prometheus.Collector.
func (metrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- grantedAt
	ch <- expiresAt
	ch <- revokedAt
}

// Collect implements prometheus.Collector.
func (m metrics) Collect(ch chan<- prometheus.Metric) {
	for _, obj := range m.requests.List() {
		ar, ok := obj.(*v1alpha1.AccessRequest)
		if !ok || ar.Status.ClusterRef == nil {
			continue
		}
		var since, expires, revoked time.Time
		granted, lingers := v1alpha1.Granted(ar.Status.Conditions), apimeta.FindStatusCondition(ar.Status.Conditions, v1alpha1.ConditionRevoked)
		switch {
		case lingers != nil:
			revoked = lingers.LastTransitionTime.Time
		case granted.Status == metav1.ConditionTrue:
			since = granted.LastTransitionTime.Time
		default:
			continue
		}
		if ar.Status.ExpirationTime != nil {
			expires = ar.Status.ExpirationTime.Time
		}
		for desc, at := range map[*prometheus.Desc]time.Time{grantedAt: since, expiresAt: expires, revokedAt: revoked} {
			seconds := float64(0)
			if !at.IsZero() {
				seconds = float64(at.Unix())
			}
			ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, seconds, ar.Status.Provider, ar.Namespace, ar.Name, ar.Status.ClusterRef.Name, ar.Status.Policy)
		}
	}
}
