package granter

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/inspector/graph"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// grant is an access that holds, or still works although it should not, as people want to know of it.
type grant struct {
	key client.ObjectKey
	// provider is who has it, object what the provider says that it is for, which may be empty.
	provider, object string
	cluster, policy  string
	// since is when it was granted, until when the credentials run out, used when somebody has told of a use, and revoked when an access
	// should have ended that still works; zero for never.
	since, until, used, revoked time.Time
	// unused tells that nobody has used it for long.
	unused bool
	// granted is the condition, which says what is in the way.
	granted metav1.Condition
	// lingers is the condition of what still works in its cluster although it is not granted any more. It is nil for what is granted.
	lingers *metav1.Condition
}

// grantOf reads a request; false for one by which nobody has access.
func grantOf(ar *v1alpha1.AccessRequest) (grant, bool) {
	lingers := apimeta.FindStatusCondition(ar.Status.Conditions, v1alpha1.ConditionRevoked)
	granted := v1alpha1.Granted(ar.Status.Conditions)
	if granted.Status != metav1.ConditionTrue && lingers == nil || ar.Status.ClusterRef == nil {
		return grant{}, false
	}
	found := grant{
		key: client.ObjectKeyFromObject(ar), provider: ar.Status.Provider, object: ar.Annotations[clusteraccess.ObjectAnnotation], cluster: ar.Status.ClusterRef.Name,
		policy: ar.Status.Policy, used: usedAt(ar), granted: granted, lingers: lingers,
		unused: apimeta.IsStatusConditionFalse(ar.Status.Conditions, v1alpha1.ConditionUsed),
	}
	if lingers == nil {
		found.since = found.granted.LastTransitionTime.Time
	} else {
		found.revoked = lingers.LastTransitionTime.Time
	}
	if ar.Status.ExpirationTime != nil {
		found.until = ar.Status.ExpirationTime.Time
	}
	return found, true
}

// usedAt is when somebody has told of a use, zero for never.
func usedAt(ar *v1alpha1.AccessRequest) time.Time {
	at, _ := time.Parse(time.RFC3339, ar.Annotations[v1alpha1.UsedAnnotation]) // what can't be read is never
	return at
}

// use says in the status whether somebody uses what is granted.
func (g *granter) use(ar *v1alpha1.AccessRequest) {
	found, ok := grantOf(ar)
	if !ok || found.lingers != nil || g.config.UnusedAfter < 0 {
		apimeta.RemoveStatusCondition(&ar.Status.Conditions, v1alpha1.ConditionUsed)
		return
	}
	last := found.since
	if found.used.After(last) {
		last = found.used
	}
	condition := metav1.Condition{
		Type: v1alpha1.ConditionUsed, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonUsed, ObservedGeneration: ar.Status.ObservedGeneration,
		Message: "The access is used, or was granted not long ago.",
	}
	if g.config.Clock.Now().Sub(last) >= g.config.UnusedAfter {
		condition.Status, condition.Reason = metav1.ConditionFalse, v1alpha1.ReasonUnused
		condition.Message = fmt.Sprintf("Nobody has used the access since %s: delete the request if nobody needs it any more.", last.UTC().Format(time.RFC3339))
	}
	apimeta.SetStatusCondition(&ar.Status.Conditions, condition)
}

// grants are those that hold, sorted by cluster and provider.
func (g *granter) grants() []grant {
	var all []grant
	for _, obj := range g.requests.List() {
		if ar, ok := obj.(*v1alpha1.AccessRequest); ok {
			if found, ok := grantOf(ar); ok {
				all = append(all, found)
			}
		}
	}
	slices.SortFunc(all, func(a, b grant) int {
		return cmp.Or(strings.Compare(a.cluster, b.cluster), strings.Compare(a.provider, b.provider), strings.Compare(a.key.String(), b.key.String()))
	})
	return all
}

// drawn has the page and explain tell of a Cluster who has access to it, and of a request what it was granted.
func (g *granter) drawn(_ context.Context, obj any) ([]*graph.Graph, error) {
	switch o := obj.(type) {
	case *v1alpha1.AccessRequest:
		if found, ok := grantOf(o); ok {
			return []*graph.Graph{drawing(fmt.Sprintf("Access of provider %s to cluster %s", found.provider, found.cluster), []grant{found})}, nil
		}
	case *v1alpha1.Cluster:
		all := slices.DeleteFunc(g.grants(), func(found grant) bool { return found.cluster != o.Name })
		return []*graph.Graph{drawing("Who has access to cluster "+o.Name, all)}, nil
	}
	return nil, nil
}

// drawing is a node for each access.
func drawing(title string, grants []grant) *graph.Graph {
	drawn := &graph.Graph{Name: "access", Title: title}
	for _, found := range grants {
		node := graph.Node{ID: found.key.String(), Label: cmp.Or(found.object, found.key.Name), Group: found.provider, State: graph.Ready, Message: found.String()}
		switch {
		case found.lingers != nil, found.unused:
			node.State = graph.Blocked
		case found.granted.Reason != v1alpha1.ReasonGranted:
			node.State = graph.Progressing
		}
		drawn.Nodes = append(drawn.Nodes, node)
	}
	return drawn
}

// String says who has which access, since when, by which policy, and until when; or since when it should have none.
func (f grant) String() string {
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	policy := "a policy without a name"
	if f.policy != "" {
		policy = "policy " + f.policy
	}
	text := fmt.Sprintf("provider %s has access to cluster %s since %s, by %s", f.provider, f.cluster, at(f.since), policy)
	if f.lingers != nil {
		text = fmt.Sprintf("provider %s still has access to cluster %s, by %s, although it should have none since %s (%s)",
			f.provider, f.cluster, policy, at(f.revoked), f.lingers.Reason)
	}
	if f.until.IsZero() {
		text += "; it brings tokens of an issuer, and needs no credentials"
	} else {
		text += "; these credentials end at " + at(f.until)
	}
	if !f.used.IsZero() {
		text += "; used at " + at(f.used)
	}
	if f.unused {
		text += "; nobody uses it"
	}
	if f.granted.Reason != v1alpha1.ReasonGranted {
		text += "; " + f.granted.Reason + ": " + f.granted.Message
	}
	return text
}

// metrics tells of each access that holds. It is safe for concurrent use.
type metrics struct{ *granter }

// metric is one number of an access.
type metric struct {
	*prometheus.Desc
	value func(grant) float64
}

var accessMetrics = []metric{
	newMetric("granted_timestamp_seconds", "Since when a provider has access to a cluster, 0 for one that should have none any more.",
		func(f grant) float64 { return seconds(f.since) }),
	newMetric("expiration_timestamp_seconds", "When the credentials of an access run out, unless they are renewed; 0 for one without credentials of its own.",
		func(f grant) float64 { return seconds(f.until) }),
	newMetric("used_timestamp_seconds", "When a provider has told that it uses an access, 0 for never.",
		func(f grant) float64 { return seconds(f.used) }),
	newMetric("unused", "Whether nobody has used an access for long.", func(f grant) float64 {
		if f.unused {
			return 1
		}
		return 0
	}),
	newMetric("revoked_timestamp_seconds", "Since when an access should have ended that still works in its cluster, 0 for one that is granted.",
		func(f grant) float64 { return seconds(f.revoked) }),
}

func newMetric(name, help string, value func(grant) float64) metric {
	return metric{prometheus.NewDesc("operatorkit_access_"+name, help, []string{"provider", "namespace", "name", "cluster", "policy"}, nil), value}
}

func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.Unix())
}

// Describe implements prometheus.Collector.
func (metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range accessMetrics {
		ch <- m.Desc
	}
}

// Collect implements prometheus.Collector.
func (ms metrics) Collect(ch chan<- prometheus.Metric) {
	for _, f := range ms.grants() {
		for _, m := range accessMetrics {
			ch <- prometheus.MustNewConstMetric(m.Desc, prometheus.GaugeValue, m.value(f), f.provider, f.key.Namespace, f.key.Name, f.cluster, f.policy)
		}
	}
}
