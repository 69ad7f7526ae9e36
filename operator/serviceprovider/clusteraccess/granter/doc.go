// Package granter answers AccessRequests: it issues credentials for clusters that are scoped to what was asked for, expire,
// are renewed, and are taken away when the request goes. And it tells in the condition Ready of each Cluster whether it answers.
// It is two frameworks, for any operator to run:
//
//	New: func(_ context.Context, d *operator.Dependencies) ([]*framework.Framework, error) {
//		return granter.New(d, granter.Config{
//			Policy: func(*v1alpha1.Cluster, *v1alpha1.AccessRequest) granter.Policy {
//				return granter.Policy{
//					Permissions: []v1alpha1.Permission{{Namespace: "*", Rules: namespaceRules}},
//					RoleRefs:    []v1alpha1.RoleReference{{Kind: "ClusterRole", Name: "view"}},
//				}
//			},
//		})
//	},
//
// In the cluster it makes a service account in a namespace of its own, a Role or ClusterRole with exactly the rules of each
// permission, and the bindings; a token by TokenRequest; and on the platform a Secret with a kubeconfig, beside the
// AccessRequest.
//
// # Promises
//
//   - What exceeds the policy is denied, with the rule that does, and nothing of the request is granted. What the policy does
//     not allow any more is taken away; while its cluster can't be reached the condition says that it still works there. Of a policy with
//     a fault nothing follows.
//   - Credentials are replaced after 70 to 80 % of their life, and at once when the cluster does not accept them any more: the
//     service account was deleted, the cluster was built anew, its keys were changed. While there is something in the way, a
//     request with credentials that are still good stays Granted, and its condition says what is in the way.
//   - What somebody else changes or deletes of all this is put right at once.
//   - When a request is deleted, nothing of it stays: the service account, which ends all its tokens, roles, bindings and the
//     Secret are gone before the request is. Namespaces stay. While the cluster can't be reached the request stays, and its
//     condition says for which cluster it waits; v1alpha1.AbandonAnnotation lets go of a cluster that is gone for good, with
//     an event that names it.
//   - One granter answers a request, the first one that finds it: it says so in the status (granter) before it writes anything else.
//     Others leave the request alone, with an event that names it; one that was renamed takes over, and the credentials stay. Who
//     takes granter out of the status gives the request to another one, provided that the first one does not run any more. What is made in clusters is named after the UID of
//     the request, so that platforms with requests of the same names don't meet.
//   - A plan makes no token. No token gets into a log, an event, an error or a plan.
//   - A cluster that does not answer delays only the requests for it: see package target, by which clusters are reached.
//
// # Permissions
//
// On the platform: AccessRequests (get, list, watch, patch, and patch of the status), Clusters (get, list, watch, and patch
// of the status), ClusterRequests (get, list, watch), Secrets (get, list, watch, create, patch, delete), events (create, patch). In clusters: namespaces (get,
// create), service accounts, roles, cluster roles and their bindings (get, list, watch, create, patch, delete),
// serviceaccounts/token (create), tokenreviews (create); and what it grants, or the verbs escalate and bind of roles.
package granter
