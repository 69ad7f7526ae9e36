package inspector

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/operatorkit/operatorkit/framework"
)

// The verbs that an Authorizer is asked about.
const (
	verbGet  = "get"
	verbPlan = "plan"
)

// The answers of an Authorizer that are not faults of its own.
var (
	// ErrUnauthenticated is a request of which it is not known whose it is.
	ErrUnauthenticated = errors.New("unauthenticated")
	// ErrForbidden is a request of somebody who may not do this.
	ErrForbidden = errors.New("forbidden")
)

// Authorizer decides who may look at the page.
type Authorizer interface {
	// Authorize returns nil if the sender of the request may do what the verb says at its path:
	// "get" is to look, and "plan" is to have a plan made, which writes nothing but makes the
	// operator read. Errors other than ErrUnauthenticated and ErrForbidden mean that it is not
	// known.
	Authorize(r *http.Request, verb string) error
}

// Authorized lets those requests pass to next that an Authorizer lets get what is at their path. Others are answered 401 or 403, and
// 500 when that can't be told, of which failed learns why.
func Authorized(a Authorizer, next http.Handler, failed func(error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status, reason := authorize(a, r, verbGet, failed); status != http.StatusOK {
			refuse(w, status, reason)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// authorize asks an Authorizer. The reason is why the status is another one than 200.
func authorize(a Authorizer, r *http.Request, verb string, failed func(error)) (status int, reason string) {
	err := a.Authorize(r, verb)
	switch {
	case err == nil:
		return http.StatusOK, ""
	case errors.Is(err, ErrUnauthenticated):
		return http.StatusUnauthorized, err.Error()
	case errors.Is(err, ErrForbidden):
		return http.StatusForbidden, err.Error()
	}
	failed(err)
	return http.StatusInternalServerError, "can't tell whether you may look: the log of the operator says why"
}

// KubernetesAuthorizerConfig configures a KubernetesAuthorizer.
type KubernetesAuthorizerConfig struct {
	// RESTConfig tells the API server. Its user must be allowed to create TokenReviews and SubjectAccessReviews, as the
	// cluster role system:auth-delegator is. Its limit on the rate of requests does not count here: anybody can have questions asked, and
	// would use up what others have of it. It is not changed. Required.
	RESTConfig *rest.Config
	// TTL is how long an answer of the API server is believed, so that a permission that was taken away is used that much
	// longer at most, and one that was given is noticed that much later. Default: 10 seconds.
	TTL time.Duration
}

// KubernetesAuthorizer asks the API server whose a bearer token is (TokenReview), and what that user may do at the path of
// the request, which is a non-resource URL (SubjectAccessReview). A cluster role that allows everything reads:
//
//	rules:
//	- nonResourceURLs: ["/inspector", "/inspector/*"]
//	  verbs: ["get", "plan"]
type KubernetesAuthorizer struct {
	tokens   authenticationclient.TokenReviewInterface
	accesses authorizationclient.SubjectAccessReviewInterface
	http     *http.Client
	ttl      time.Duration
	// accepted and refused have an answer for each hash of a question. However many questions are
	// refused, they push out nobody else. Of what somebody sends only hashes are kept.
	accepted, refused *cache.LRUExpireCache
	// asking are the questions to the API server that are under way.
	asking singleflight.Group
}

// answer is what the API server says about a token or an access.
type answer struct {
	accepted bool
	// user is the owner of an accepted token.
	user authenticationv1.UserInfo
}

// authTimeout ends a question to the API server, and maxAnswers is how many answers are remembered.
const (
	authTimeout = 10 * time.Second
	maxAnswers  = 1024
	defaultTTL  = 10 * time.Second
)

// The rate of reviews of tokens, and that of reviews of accesses. They are limited, because whoever can reach the page has the API server asked.
const (
	questionsPerSecond = 100
	questionsAtOnce    = 200
)

// NewKubernetesAuthorizer returns an authorizer, or an error for which framework.IsInvalidConfig holds. It sends no request.
func NewKubernetesAuthorizer(config KubernetesAuthorizerConfig) (*KubernetesAuthorizer, error) {
	if config.RESTConfig == nil {
		return nil, fmt.Errorf("%w: inspector.KubernetesAuthorizerConfig: RESTConfig must not be nil", framework.ErrInvalidConfig)
	}
	orDefault(&config.TTL, defaultTTL)
	restConfig := rest.CopyConfig(config.RESTConfig)
	// Each of the two clients makes a limiter of its own of it: strangers don't delay questions about what known users may do.
	restConfig.QPS, restConfig.Burst, restConfig.RateLimiter = questionsPerSecond, questionsAtOnce, nil
	httpClient, err := rest.HTTPClientFor(restConfig)
	if err != nil {
		return nil, fmt.Errorf("%w: inspector.KubernetesAuthorizerConfig: RESTConfig: %w", framework.ErrInvalidConfig, err)
	}
	authentication, err := authenticationclient.NewForConfigAndClient(restConfig, httpClient)
	if err != nil {
		return nil, fmt.Errorf("make the client for token reviews: %w", err)
	}
	authorization, err := authorizationclient.NewForConfigAndClient(restConfig, httpClient)
	if err != nil {
		return nil, fmt.Errorf("make the client for access reviews: %w", err)
	}
	return &KubernetesAuthorizer{
		tokens: authentication.TokenReviews(), accesses: authorization.SubjectAccessReviews(), http: httpClient,
		ttl: config.TTL, accepted: cache.NewLRUExpireCache(maxAnswers), refused: cache.NewLRUExpireCache(maxAnswers),
	}, nil
}

// Authorize implements Authorizer.
func (a *KubernetesAuthorizer) Authorize(r *http.Request, verb string) error {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" {
		return fmt.Errorf("%w: the request has no bearer token", ErrUnauthenticated)
	}
	known, err := a.ask(r.Context(), "token "+token, func(ctx context.Context) (answer, error) {
		return a.reviewToken(ctx, token)
	})
	switch {
	case err != nil:
		return err
	case !known.accepted:
		return fmt.Errorf("%w: the API server does not accept the token", ErrUnauthenticated)
	}
	user, path := known.user, r.URL.Path
	access := fmt.Sprintf("access %q %q %q %q %q %q", user.Username, user.UID, user.Groups, user.Extra, verb, path)
	allowed, err := a.ask(r.Context(), access, func(ctx context.Context) (answer, error) {
		return a.reviewAccess(ctx, user, verb, path)
	})
	if err == nil && !allowed.accepted {
		err = fmt.Errorf("%w: %s may not %s %s", ErrForbidden, user.Username, verb, path)
	}
	return err
}

// Close closes idle connections to the API server.
func (a *KubernetesAuthorizer) Close() { utilnet.CloseIdleConnectionsFor(a.http.Transport) }

// ask returns the answer to a question, which is remembered. It asks once for all who want to know
// the same at the same time, and does not end with the request of the first of them.
func (a *KubernetesAuthorizer) ask(
	ctx context.Context, question string, review func(context.Context) (answer, error),
) (answer, error) {
	hash := sha256.Sum256([]byte(question))
	given, err, _ := a.asking.Do(string(hash[:]), func() (any, error) {
		for _, answers := range []*cache.LRUExpireCache{a.accepted, a.refused} {
			if known, ok := answers.Get(hash); ok {
				return known, nil
			}
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), authTimeout)
		defer cancel()
		given, err := review(ctx)
		switch {
		case err != nil:
		case given.accepted:
			a.accepted.Add(hash, given, a.ttl)
		default:
			a.refused.Add(hash, given, a.ttl)
		}
		return given, err
	})
	return given.(answer), err
}

// reviewToken asks whose a token is.
func (a *KubernetesAuthorizer) reviewToken(ctx context.Context, token string) (answer, error) {
	review, err := a.tokens.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token},
	}, metav1.CreateOptions{})
	if err != nil {
		return answer{}, fmt.Errorf("review a token: %w", err)
	}
	return answer{review.Status.Authenticated, review.Status.User}, nil
}

// reviewAccess asks whether a user may do something.
func (a *KubernetesAuthorizer) reviewAccess(
	ctx context.Context, user authenticationv1.UserInfo, verb, path string,
) (answer, error) {
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for name, values := range user.Extra {
		extra[name] = authorizationv1.ExtraValue(values)
	}
	review, err := a.accesses.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: verb},
	}}, metav1.CreateOptions{})
	if err != nil {
		return answer{}, fmt.Errorf("review the access of %s: %w", user.Username, err)
	}
	return answer{accepted: review.Status.Allowed && !review.Status.Denied}, nil
}
