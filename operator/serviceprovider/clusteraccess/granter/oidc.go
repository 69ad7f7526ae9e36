package granter

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// reservedPrefix is what names begin with that Kubernetes gives itself: no issuer vouches for one.
const reservedPrefix = "system:"

// subjects are whom a request gives rights to in its cluster, under a name: a service account that is made for it, or somebody whom an
// issuer vouches for.
func (g *granter) subjects(cluster *v1alpha1.Cluster, ar *v1alpha1.AccessRequest, name string) []rbacv1.Subject {
	identity := ar.Spec.OIDC
	if identity == nil {
		return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: g.config.Namespace, Name: name}}
	}
	issuer := issuerOf(cluster, identity)
	if issuer == nil {
		return nil
	}
	var subjects []rbacv1.Subject
	if identity.Username != "" {
		subjects = append(subjects, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: issuer.UsernamePrefix + identity.Username})
	}
	for _, group := range identity.Groups {
		subjects = append(subjects, rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: issuer.GroupsPrefix + group})
	}
	return subjects
}

// issuerOf returns the issuer of an identity that a cluster lists, nil if it lists none.
func issuerOf(cluster *v1alpha1.Cluster, identity *v1alpha1.OIDCIdentity) *v1alpha1.OIDCIssuer {
	i := slices.IndexFunc(cluster.Spec.OIDCIssuers, func(issuer v1alpha1.OIDCIssuer) bool { return issuer.URL == identity.Issuer })
	if i < 0 {
		return nil
	}
	return &cluster.Spec.OIDCIssuers[i]
}

// identify denies a request for somebody whom its cluster can't know by the issuer, or takes for a part of itself.
func (g *granter) identify(w *work, ar *v1alpha1.AccessRequest) {
	identity := ar.Spec.OIDC
	if identity == nil || w.denied {
		return
	}
	if issuerOf(w.cluster, identity) == nil {
		w.obstacle, w.denied = obstaclef(v1alpha1.ReasonIssuerUnknown, "Cluster %s does not list the issuer %s.", w.cluster.Name, identity.Issuer), true
		return
	}
	for _, subject := range g.subjects(w.cluster, ar, w.name) {
		if strings.HasPrefix(subject.Name, reservedPrefix) {
			w.obstacle, w.denied = obstaclef(v1alpha1.ReasonExceedsPolicy,
				"The name %q begins with %q, which Kubernetes keeps for itself: ask for somebody else.", subject.Name, reservedPrefix), true
			return
		}
	}
}

// identityExcesses name whom a request asks for that the policy does not allow.
func (p Policy) identityExcesses(identity *v1alpha1.OIDCIdentity) []string {
	if identity == nil {
		return nil
	}
	allowed := func(holds func(v1alpha1.OIDCIdentity) bool) bool {
		return slices.ContainsFunc(p.Identities, func(i v1alpha1.OIDCIdentity) bool { return i.Issuer == identity.Issuer && holds(i) })
	}
	var excesses []string
	if name := identity.Username; name != "" && !allowed(func(i v1alpha1.OIDCIdentity) bool { return matches(i.Username, name) }) {
		excesses = append(excesses, fmt.Sprintf("spec.oidc.username (%s of %s)", name, identity.Issuer))
	}
	for j, group := range identity.Groups {
		if !allowed(func(i v1alpha1.OIDCIdentity) bool {
			return slices.ContainsFunc(i.Groups, func(pattern string) bool { return matches(pattern, group) })
		}) {
			excesses = append(excesses, fmt.Sprintf("spec.oidc.groups[%d] (%s of %s)", j, group, identity.Issuer))
		}
	}
	return excesses
}
