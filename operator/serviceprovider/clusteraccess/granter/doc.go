// Package granter answers AccessRequests: it issues credentials for clusters that are scoped to what was asked for, expire,
// are renewed, and are taken away when the request goes. And it tells in the condition Ready of each Cluster whether it answers, and looks for
// what is left in it of requests that are gone.
// It is two frameworks, for any operator to run:
//
//	New: func(_ context.Context, d *operator.Dependencies) ([]*framework.Framework, error) {
//		return granter.New(d, granter.Config{
//			Policy: func(_ *v1alpha1.Cluster, request *v1alpha1.AccessRequest) granter.Policy {
//				if request.Namespace != namespaces.Of("postgres") {
//					return granter.Policy{}
//				}
//				return granter.Policy{
//					Name:        "databases",
//					Permissions: []v1alpha1.Permission{{Namespace: "*", Rules: namespaceRules}},
//					RoleRefs:    []v1alpha1.RoleReference{{Kind: "ClusterRole", Name: "view"}},
//				}
//			},
//		})
//	},
//
// The Clusters, and the Secrets with which they are managed, are in a namespace that only the platform's own programs read. A request is in
// the namespace of the service provider that asks, and so is the Secret that is issued for it: see package namespaces. In the cluster it makes a service account in a namespace of its own, a Role or ClusterRole with exactly the rules of each
// permission, and the bindings; a token by TokenRequest; and on the platform a Secret with a kubeconfig, beside the
// AccessRequest.
//
// A request may name somebody whom an OIDC issuer vouches for (spec.oidc), if the Cluster lists the issuer and the policy allows it. The
// roles are bound to that user, or to the groups, then; no service account is made and no token issued; and the kubeconfig says how the
// cluster is reached, for who brings a token of the issuer.
//
// # Promises
//
//   - Who asks follows from the namespace of a request. In one that is no provider's it is denied, whatever the policy says.
//   - What exceeds the policy is denied, with the rule that does, and nothing of the request is granted. So are rules that stand for more
//     than 50,000 rights (combinations of group, resource, verb and name), whatever the policy says. What the policy does
//     not allow any more is taken away; while its cluster can't be reached the condition says that it still works there. Of a policy with
//     a fault nothing follows: what was granted stays and is renewed, and nothing more is granted.
//   - Credentials are replaced after 70 to 80 % of their life, and at once when the cluster does not accept them any more: the
//     service account was deleted, the cluster was built anew, its keys were changed. While there is something in the way, a
//     request with credentials that are still good stays Granted, and its condition says what is in the way.
//   - What somebody else changes or deletes of all this is put right at once.
//   - When a request is deleted, nothing of it stays: the service account, which ends all its tokens, roles, bindings and the
//     Secret are gone before the request is. Namespaces stay. While the cluster can't be reached the request stays, and its
//     condition says for which cluster it waits; v1alpha1.AbandonAnnotation lets go of a cluster that is gone for good, with
//     an event that names it. On a request it counts only while the cluster can't be reached: the provider may put it there, and
//     what it was granted in a cluster that answers does not stay.
//   - What is granted belongs to a request that is there, or goes. A provider can take the granter's finalizer off its own request, and
//     somebody else a namespace away. A granter that runs knows still that the request was there, and lets it go. What went while none ran is
//     looked for in each Cluster that answers: at the start, when it answers again, and every CheckInterval. An event at the Cluster names the
//     request. A Cluster that the platform has abandoned is left alone, and so is what another platform has made.
//   - While what was granted can't be taken away in its cluster, the request has the condition Revoked with the status False, and is told of as
//     access still.
//   - The status of a request says nothing of the platform's namespaces, Secrets and addresses: errors are told by their kind. They are
//     in the log and in events, and what is wrong with a cluster stands in its condition Ready.
//   - One granter answers a request, the first one that finds it: it says so in the status (granter) before it writes anything else.
//     And one tells whether a Cluster answers, by the annotation health.operatorkit.io/claimed-by. Others leave the request alone, with an event that names it; one that was renamed takes over, and the credentials stay. Who
//     takes granter out of the status gives the request to another one, provided that the first one does not run any more. What is made in clusters is named after the UID of
//     the request, so that platforms with requests of the same names don't meet.
//   - The status of the requests says who has which access, since when, by which policy and until when. So do the metrics
//     operatorkit_access_granted_timestamp_seconds, operatorkit_access_expiration_timestamp_seconds and
//     operatorkit_access_revoked_timestamp_seconds (0 for what is granted; otherwise since when it should have ended), with the labels
//     provider, namespace, name, cluster and policy, which hold names of objects.
//   - A plan makes no token. No token gets into a log, an event, an error or a plan.
//   - A cluster that does not answer delays only the requests for it: see package target, by which clusters are reached.
//
// # Permissions
//
// On the platform, in the namespaces of the operator: AccessRequests (get, list, watch, patch, and patch of the status), ClusterRequests
// (get, list, watch), Secrets (get, list, watch, create, patch, delete), events (create, patch); in that of the Clusters: Clusters (get,
// list, watch, patch, and patch of the status), Secrets (get, list, watch), events (create, patch). In clusters: namespaces (get,
// create), service accounts, roles, cluster roles and their bindings (get, list, watch, create, patch, delete),
// serviceaccounts/token (create), tokenreviews (create); and what it grants, or the verbs escalate and bind of roles.
package granter
