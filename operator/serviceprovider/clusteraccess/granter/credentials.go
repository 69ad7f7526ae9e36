package granter

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/context/resourcecanceledcontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// What a Secret with credentials says about them.
const (
	expirationAnnotation = "clusters.operatorkit.io/expiration-time"
	renewalAnnotation    = "clusters.operatorkit.io/renewal-time"
	lifetimeAnnotation   = "clusters.operatorkit.io/token-lifetime"
	accountAnnotation    = "clusters.operatorkit.io/service-account-uid"
	// signInAnnotation is "oidc" where there is no token, and nothing to expire.
	signInAnnotation = "clusters.operatorkit.io/sign-in"
	signInByOIDC     = "oidc"
)

// secrets is the resource that issues and renews credentials. Computing asks for no token: a plan issues none.
type secrets struct{ *granter }

// secretState is the Secret of a request, as it is or as it should be; a part of a patch says what is done with it. It shows
// nothing of the Secret's data.
type secretState struct {
	// secret is the Secret as it is, nil if there is none.
	secret *corev1.Secret
	// accepted tells whether the cluster takes its token, and leads whether it leads to the cluster.
	accepted, leads bool
	// endpoint, account and uid are what credentials are to be for. wanted is false when there should be none.
	wanted   bool
	endpoint endpoint
	account  client.ObjectKey
	uid      types.UID
	lifetime time.Duration
	// oidc tells that they hold no token.
	oidc bool

	// action, name and why are set in a part of a patch.
	action plan.Action
	name   client.ObjectKey
	why    string
}

// Changes implements plan.Changer.
func (s secretState) Changes() []plan.Change {
	if s.action == "" {
		return nil
	}
	return []plan.Change{{
		Action: s.action, Object: plan.Object{APIVersion: "v1", Kind: "Secret", Namespace: s.name.Namespace, Name: s.name.Name}, Description: s.why,
	}}
}

// String implements fmt.Stringer, so that nothing secret is printed.
func (s secretState) String() string { return fmt.Sprintf("%s %s %s", s.action, s.name, s.why) }

// GoString implements fmt.GoStringer.
func (s secretState) GoString() string { return s.String() }

// MarshalJSON implements json.Marshaler.
func (s secretState) MarshalJSON() ([]byte, error) { return []byte(`{}`), nil }

// Name implements framework.TypedCRUDResourceOps.
func (s *secrets) Name() string { return "credentials" }

// Rights implements framework.RightsLister. By none of them the Secrets beside the Clusters can be changed.
func (s *secrets) Rights() []framework.Right {
	return []framework.Right{{
		Kind: corev1.SchemeGroupVersion.WithKind("Secret"), Namespaces: s.requests.Namespaces(), Verbs: []string{"get", "create", "patch", "delete"},
	}}
}

// GetCurrentState implements framework.TypedCRUDResourceOps.
func (s *secrets) GetCurrentState(ctx context.Context, ar *v1alpha1.AccessRequest) (secretState, error) {
	w := workOf(ctx)
	key := client.ObjectKey{Namespace: ar.Namespace, Name: secretName(ar.Name)}
	secret := &corev1.Secret{}
	if err := s.client.Get(ctx, key, secret); client.IgnoreNotFound(err) != nil {
		return secretState{}, fmt.Errorf("read Secret %s: %w", key, err)
	} else if err != nil {
		return secretState{}, nil
	}
	state := secretState{secret: secret}
	if !metav1.IsControlledBy(secret, ar) {
		return state, nil
	}
	w.credentials = credentialsIn(secret)
	if w.on == nil || ar.DeletionTimestamp != nil || w.denied {
		return state, nil
	}
	endpoint, err := s.endpointOf(w.cluster)
	if err != nil {
		return secretState{}, err
	}
	token, leads := endpoint.issued(secret.Data[v1alpha1.KubeconfigKey])
	state.leads = leads && secret.Annotations[v1alpha1.LocalServerAnnotation] == endpoint.local
	if !state.leads || w.credentials.oidc {
		// A token of the server that the cluster was reached at before is nothing for the one that it is reached at now.
		return state, nil
	}
	state.accepted, err = accepts(ctx, w.on, s.account(w), token)
	return state, err
}

// GetDesiredState implements framework.TypedCRUDResourceOps.
func (s *secrets) GetDesiredState(ctx context.Context, ar *v1alpha1.AccessRequest) (secretState, error) {
	w := workOf(ctx)
	if w.denied || ar.DeletionTimestamp != nil {
		return secretState{}, nil
	}
	if w.on == nil || w.err != nil {
		resourcecanceledcontext.SetCanceled(ctx)
		return secretState{}, nil
	}
	endpoint, err := s.endpointOf(w.cluster)
	if err != nil {
		return secretState{}, err
	}
	if ar.Spec.OIDC != nil {
		return secretState{wanted: true, endpoint: endpoint, oidc: true}, nil
	}
	uid, err := accountUID(ctx, w.on, s.account(w))
	if err != nil {
		return secretState{}, err
	}
	return secretState{wanted: true, endpoint: endpoint, account: s.account(w), uid: uid, lifetime: s.config.lifetime(ar)}, nil
}

func (s *secrets) account(w *work) client.ObjectKey {
	return client.ObjectKey{Namespace: s.config.Namespace, Name: w.name}
}

// NewUpdatePatch implements framework.TypedCRUDResourceOps.
func (s *secrets) NewUpdatePatch(ctx context.Context, ar *v1alpha1.AccessRequest, current, desired secretState) (*framework.TypedPatch[secretState], error) {
	if !desired.wanted {
		return s.NewDeletePatch(ctx, ar, current, desired)
	}
	change := desired
	change.secret, change.name = current.secret, client.ObjectKey{Namespace: ar.Namespace, Name: secretName(ar.Name)}
	patch := framework.NewTypedPatch[secretState]()
	if current.secret == nil {
		change.action, change.why = plan.Create, "issue credentials"
		if desired.oidc {
			change.why = "say how the cluster is reached"
		}
		patch.SetCreateChange(change)
		return patch, nil
	}
	if !metav1.IsControlledBy(current.secret, ar) {
		return nil, framework.Permanent(fmt.Errorf("there is a Secret %s that does not belong to the AccessRequest: delete it, or name the request otherwise", change.name))
	}
	if change.why = s.whyRenew(current, desired); change.why == "" {
		return nil, nil
	}
	change.action = plan.Update
	patch.SetUpdateChange(change)
	return patch, nil
}

// whyRenew says why credentials are replaced, empty for those that are good.
func (s *secrets) whyRenew(current, desired secretState) string {
	c := credentialsIn(current.secret)
	switch {
	case !current.leads:
		return "renew the credentials, because the cluster is reached in another way"
	case desired.oidc && c.oidc:
		return ""
	case c.serviceAccount != desired.uid:
		return "renew the credentials, because the service account was made anew"
	case !current.accepted:
		return "renew the credentials, because the cluster does not accept them"
	case c.lifetime != desired.lifetime:
		return "renew the credentials, because they are to live " + desired.lifetime.String()
	case !s.config.Clock.Now().Before(c.renewal):
		return "renew the credentials before they run out"
	}
	return ""
}

// NewDeletePatch implements framework.TypedCRUDResourceOps.
func (s *secrets) NewDeletePatch(_ context.Context, ar *v1alpha1.AccessRequest, current, _ secretState) (*framework.TypedPatch[secretState], error) {
	if current.secret == nil || !metav1.IsControlledBy(current.secret, ar) {
		return nil, nil
	}
	patch := framework.NewTypedPatch[secretState]()
	patch.SetDeleteChange(secretState{
		secret: current.secret, action: plan.Delete, name: client.ObjectKeyFromObject(current.secret), why: "take the credentials away",
	})
	return patch, nil
}

// ApplyCreateChange implements framework.TypedCRUDResourceOps.
func (s *secrets) ApplyCreateChange(ctx context.Context, ar *v1alpha1.AccessRequest, change secretState) error {
	return s.put(ctx, ar, change, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: change.name.Namespace, Name: change.name.Name,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(ar, v1alpha1.GroupVersion.WithKind(v1alpha1.AccessRequestKind))},
	}})
}

// ApplyUpdateChange implements framework.TypedCRUDResourceOps.
func (s *secrets) ApplyUpdateChange(ctx context.Context, ar *v1alpha1.AccessRequest, change secretState) error {
	return s.put(ctx, ar, change, change.secret.DeepCopy())
}

// put issues a token, unless there is to be none, and writes it into a Secret with a kubeconfig. That the service account was deleted a moment
// ago is no error: the next reconciliation makes it anew, unless the policy has a fault.
func (s *secrets) put(ctx context.Context, ar *v1alpha1.AccessRequest, change secretState, secret *corev1.Secret) error {
	w := workOf(ctx)
	user, token, annotations := signInByOIDC, "", map[string]string{signInAnnotation: signInByOIDC}
	if !change.oidc {
		var err error
		user = change.account.Name
		if token, annotations, err = s.issue(ctx, ar, change); apierrors.IsNotFound(err) && w.fault == nil {
			w.obstacle = obstaclef(v1alpha1.ReasonAccountGone, "The service account %s was deleted, and is made anew.", w.name)
			return nil
		} else if err != nil {
			return err
		}
	}
	kubeconfig, err := change.endpoint.render(w.cluster.Name, user, token)
	if err != nil {
		return fmt.Errorf("write the kubeconfig for Cluster %s", w.cluster.Name)
	}
	secret.Data = map[string][]byte{v1alpha1.KubeconfigKey: kubeconfig}
	secret.Labels = labels.Merge(secret.Labels, granted)
	secret.Annotations = labels.Merge(secret.Annotations, annotations)
	delete(secret.Annotations, v1alpha1.LocalServerAnnotation)
	if change.endpoint.local != "" {
		secret.Annotations[v1alpha1.LocalServerAnnotation] = change.endpoint.local
	}
	if change.secret == nil {
		err = s.client.Create(ctx, secret)
	} else {
		err = s.client.Patch(ctx, secret, client.MergeFromWithOptions(change.secret, client.MergeFromWithOptimisticLock{}))
	}
	if err != nil {
		return fmt.Errorf("%s Secret %s: %w", change.action, change.name, err)
	}
	w.credentials = credentialsIn(secret)
	return nil
}

// issue returns a new token, and what the Secret says about it.
func (s *secrets) issue(ctx context.Context, ar *v1alpha1.AccessRequest, change secretState) (token string, says map[string]string, err error) {
	w, issuedAt := workOf(ctx), s.config.Clock.Now()
	token, lifetime, err := issue(ctx, w.on, change.account, change.lifetime)
	if err != nil {
		return "", nil, err
	}
	uid, err := accountUID(ctx, w.on, change.account)
	return token, map[string]string{
		expirationAnnotation: issuedAt.Add(lifetime).UTC().Format(time.RFC3339),
		renewalAnnotation:    issuedAt.Add(renewAfter(ar.UID, lifetime)).UTC().Format(time.RFC3339),
		lifetimeAnnotation:   change.lifetime.String(),
		accountAnnotation:    string(uid),
	}, err
}

// ApplyDeleteChange implements framework.TypedCRUDResourceOps.
func (s *secrets) ApplyDeleteChange(ctx context.Context, _ *v1alpha1.AccessRequest, change secretState) error {
	uid, version := change.secret.UID, change.secret.ResourceVersion
	if err := s.client.Delete(ctx, change.secret.DeepCopy(), client.Preconditions{UID: &uid, ResourceVersion: &version}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Secret %s: %w", change.name, err)
	}
	workOf(ctx).credentials = nil
	return nil
}

// credentialsIn reads what a Secret says about itself. What can't be read is zero, and so due for renewal.
func credentialsIn(secret *corev1.Secret) *credentials {
	expiration, _ := time.Parse(time.RFC3339, secret.Annotations[expirationAnnotation])
	renewal, _ := time.Parse(time.RFC3339, secret.Annotations[renewalAnnotation])
	lifetime, _ := time.ParseDuration(secret.Annotations[lifetimeAnnotation])
	return &credentials{
		secret: secret.Name, expiration: expiration, renewal: renewal, lifetime: lifetime,
		serviceAccount: types.UID(secret.Annotations[accountAnnotation]), oidc: secret.Annotations[signInAnnotation] == signInByOIDC,
	}
}
