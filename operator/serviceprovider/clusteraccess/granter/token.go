package granter

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// issue has the cluster make a token, and returns how long it lives. The time that the server says is not looked at, because
// its clock may be another one: what counts is how long the token lives from now on.
func issue(ctx context.Context, on *target.Cluster, account client.ObjectKey, lifetime time.Duration) (string, time.Duration, error) {
	seconds := int64(lifetime / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name}}
	if err := on.Client().SubResource("token").Create(ctx, sa, request); err != nil {
		return "", 0, fmt.Errorf("request a token of service account %s: %w", account, err)
	}
	if request.Status.Token == "" || request.Spec.ExpirationSeconds == nil {
		return "", 0, fmt.Errorf("request a token of service account %s: the answer has none", account)
	}
	return request.Status.Token, time.Duration(*request.Spec.ExpirationSeconds) * time.Second, nil
}

// accepts asks the cluster whether it takes a token for that of the service account.
func accepts(ctx context.Context, on *target.Cluster, account client.ObjectKey, token string) (bool, error) {
	if token == "" {
		return false, nil
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if err := on.Client().Create(ctx, review); err != nil {
		return false, fmt.Errorf("ask whether the token of service account %s is accepted: %w", account, err)
	}
	return review.Status.Authenticated && review.Status.User.Username == "system:serviceaccount:"+account.Namespace+":"+account.Name, nil
}

// accountUID returns the UID of a service account, which is empty if there is none.
func accountUID(ctx context.Context, on *target.Cluster, account client.ObjectKey) (types.UID, error) {
	sa := &metav1.PartialObjectMetadata{}
	sa.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	if err := on.Client().Get(ctx, account, sa); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("read service account %s: %w", account, err)
	} else if err != nil {
		return "", nil
	}
	return sa.UID, nil
}

// renewAfter is when credentials are replaced: after 70 to 80 % of their life, by chance, but always the same for one
// request, so that many that were issued together are not renewed together.
func renewAfter(request types.UID, lifetime time.Duration) time.Duration {
	return lifetime*70/100 + time.Duration(chance(request)*float64(lifetime/10))
}

// chance is a number from 0 up to 1 that depends on a UID.
func chance(uid types.UID) float64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(uid)) // never fails
	return float64(h.Sum32()) / (1 << 32)
}
