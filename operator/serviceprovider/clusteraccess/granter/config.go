package granter

import (
	"cmp"
	"fmt"
	"net/http"
	"path"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/faults"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess/namespaces"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// The defaults of a Config.
const (
	DefaultNamespace     = "operatorkit-access"
	DefaultTokenLifetime = time.Hour
	DefaultMaxLifetime   = 24 * time.Hour
	DefaultCheckInterval = 5 * time.Minute
)

// minLifetime is the shortest life of a token that API servers give.
const minLifetime = 10 * time.Minute

// Config configures the granter.
type Config struct {
	// Layout says where the Clusters are, and which namespaces are the service providers'. A request in any other one is denied before any
	// policy is asked. Default: that of package namespaces.
	Layout namespaces.Layout
	// Policy returns the most that may be granted to a request for a cluster. Who asks is told by the namespace of the request, which is a
	// provider's, and by nothing else in it: labels, annotations and names are the asker's own. It is asked in every reconciliation, must be
	// quick, and must not change its arguments. What it no longer allows is taken away, at the latest after CheckInterval. Of one
	// that Validate finds a fault with nothing follows: what was granted stays, and its credentials are renewed, nothing more is granted, and an
	// error tells the fault.
	// Required.
	Policy func(cluster *v1alpha1.Cluster, request *v1alpha1.AccessRequest) Policy
	// ReservedNamespaces are namespaces in clusters that no pattern of a policy includes, beside the granter's own, "kube-system", and
	// those of the Layout: where Clusters are, and what is any provider's. Default: none.
	ReservedNamespaces []string
	// Platform tells platforms apart that manage the same clusters with operators of the same name: it goes into the marks of
	// what is made there, and must not change. Default: empty, for clusters that belong to one platform, or to operators of
	// different names.
	Platform string
	// Namespace is where service accounts are made in clusters. It is made if there is none, and stays. Nobody should have
	// rights there whom the platform does not trust. It must not change while there are AccessRequests. Default:
	// DefaultNamespace.
	Namespace string
	// TokenLifetime is for requests that ask for none. Default: one hour.
	TokenLifetime time.Duration
	// MaxTokenLifetime is the longest that is given. A request for more gets so much. Default: 24 hours.
	MaxTokenLifetime time.Duration
	// CheckInterval is how often, ±10 %, a cluster is asked whether it still accepts the credentials. Most of what can go
	// wrong with them is noticed at once anyway. Default: 5 minutes.
	CheckInterval time.Duration
	// Secrets selects the Secrets with kubeconfigs of Clusters by their labels. Others are not even received. Default: all Secrets beside
	// the Clusters.
	Secrets labels.Selector
	// LocalServers has clusters reached at the address that the v1alpha1.LocalServerAnnotation on the Secret of their
	// kubeconfig says, for a granter that does not run on the platform's network. Default: false.
	LocalServers bool
	// WrapTransport goes around the requests to a cluster, behind the Fence of the Dependencies: for traces, for faults in
	// tests. It is called once for each kubeconfig. Default: none.
	WrapTransport func(cluster informer.Key, next http.RoundTripper) http.RoundTripper
	// Clock tells when credentials are to be renewed. Default: the real one.
	Clock clock.PassiveClock
}

// complete fills in the defaults. The error is one for which framework.IsInvalidConfig holds, and lists every fault.
func (c *Config) complete() error {
	c.Namespace = cmp.Or(c.Namespace, DefaultNamespace)
	c.TokenLifetime = cmp.Or(c.TokenLifetime, DefaultTokenLifetime)
	c.MaxTokenLifetime = cmp.Or(c.MaxTokenLifetime, DefaultMaxLifetime)
	c.CheckInterval = cmp.Or(c.CheckInterval, DefaultCheckInterval)
	if c.Secrets == nil {
		c.Secrets = labels.Everything()
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	var wrong faults.List
	var err error
	if c.Layout, err = c.Layout.Complete(); err != nil {
		wrong.Add("Layout: %w", err)
	}
	wrong.If(c.Policy == nil, "Policy must be set")
	if msgs := validation.IsDNS1123Label(c.Namespace); len(msgs) > 0 {
		wrong.Add("Namespace %q is not the name of a namespace: %s", c.Namespace, msgs[0])
	}
	wrong.If(c.TokenLifetime < minLifetime, "TokenLifetime must be %s or more, which is what API servers give, is %s", minLifetime, c.TokenLifetime)
	wrong.If(c.MaxTokenLifetime < c.TokenLifetime, "MaxTokenLifetime must not be less than TokenLifetime, is %s and %s", c.MaxTokenLifetime, c.TokenLifetime)
	wrong.If(c.CheckInterval < 0, "CheckInterval must not be negative, is %s", c.CheckInterval)
	return wrong.Of("granter.Config")
}

// Validate returns an error that names every pattern of the policy that is malformed, and so would match nothing.
func (p Policy) Validate() error {
	var wrong faults.List
	check := func(field, pattern string) {
		if _, err := path.Match(pattern, ""); err != nil {
			wrong.Add("%s: %q is no pattern: %w", field, pattern, err)
		}
	}
	for i, permission := range p.Permissions {
		check(fmt.Sprintf("Permissions[%d].Namespace", i), permission.Namespace)
	}
	for i, ref := range p.RoleRefs {
		check(fmt.Sprintf("RoleRefs[%d].Name", i), ref.Name)
		check(fmt.Sprintf("RoleRefs[%d].Namespace", i), ref.Namespace)
	}
	for i, identity := range p.Identities {
		for _, pattern := range append([]string{identity.Username}, identity.Groups...) {
			check(fmt.Sprintf("Identities[%d]", i), pattern)
		}
	}
	return wrong.Of("granter.Policy")
}

// lifetime is how long the token of a request lives.
func (c *Config) lifetime(request *v1alpha1.AccessRequest) time.Duration {
	lifetime := c.TokenLifetime
	if request.Spec.TokenLifetime != nil {
		lifetime = request.Spec.TokenLifetime.Duration
	}
	return max(minLifetime, min(lifetime, c.MaxTokenLifetime)).Truncate(time.Second)
}
