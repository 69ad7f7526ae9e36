package clusteraccess

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/giantswarm/micrologger"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/faults"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess/namespaces"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusters"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// The defaults of a Config.
const (
	DefaultRetryPending = 5 * time.Second
	DefaultRetryDenied  = time.Minute
	DefaultIdleTimeout  = 5 * time.Minute
)

// Config configures Clusters.
type Config struct {
	// Provider is the name of the service provider, at most 63 letters, digits and '-'. It goes into the names and labels of
	// what is asked for. When it changes, the old one goes to FormerProviders; the namespace stays. Required.
	Provider string
	// FormerProviders are names that the service provider had before. What was asked for under them is taken over as it is.
	// Default: none.
	FormerProviders []string
	// Operator is the name of the operator, which tells service providers of the same name apart, and goes into marks as Provider
	// does. FormerOperators are names that it had before. Default: identity.Program, the main package; none.
	Operator        string
	FormerOperators []string
	// Namespace is that of the service provider on the platform cluster: what is asked for is there, and what is issued. The platform makes it.
	// Default: namespaces.Of(Provider), "provider-" and the name.
	Namespace string
	// ClusterNamespace is where the Clusters are, for ClusterObject: nothing else needs it. Default: none.
	ClusterNamespace string
	// Labels are put on everything that is asked for, beside those of this package. One that is not given any more stays where it is.
	// Default: none.
	Labels map[string]string
	// Platform is the platform cluster. Required.
	Platform *clusters.Cluster
	// Scheme is that of the clients of clusters. Required.
	Scheme *runtime.Scheme
	// Logger is told when a cluster stops or begins to answer. Required.
	Logger micrologger.Logger
	// OIDCToken returns a token of an issuer, for clusters that were asked for by Ask.OIDC. It is called for each request, from several
	// goroutines, and keeps the token while it is valid: see TokenFile. All clusters of an issuer are sent the same token: one that is taken
	// over can use it in the others, with all that was granted to the same identity there. Default: such clusters can't be reached.
	OIDCToken func(ctx context.Context, issuer string) (string, error)
	// LocalServers is for development: see the package's documentation. Default: false.
	LocalServers bool
	// RetryPending and RetryDenied are after what time a request that waits, or is denied, is looked at again; what is watched
	// by Changes is noticed at once. Default: 5 seconds, one minute.
	RetryPending, RetryDenied time.Duration
	// IdleTimeout is how long connections are kept that nobody uses any more. Default: 5 minutes.
	IdleTimeout time.Duration
	// WrapTransport goes around the requests to a cluster, which is named by its AccessRequest; a Fixed one by the namespace of its
	// Secret and its id. Default: none.
	WrapTransport func(access informer.Key, next http.RoundTripper) http.RoundTripper
}

// Access is one of the clusters of an object.
type Access[D any] struct {
	// ID tells it from the object's other clusters. It must not change.
	ID string
	// Ask says what is asked for, for an object with additional data; nil is nothing, and what was asked for before is taken
	// away. It must give the same for the same object.
	Ask func(request reconcile.Request, data D) (*Ask, error)
	// Fixed is a cluster that is not asked for, in place of Ask. Default: it is asked for.
	Fixed *Fixed
}

// Ask is what is asked for: a cluster, and rights. Exactly one of ClusterRef, RequestRef and Cluster is set, and does not change
// for an object.
type Ask struct {
	// ClusterRef is the name of a Cluster.
	ClusterRef string
	// RequestRef is the name of a ClusterRequest in the same namespace.
	RequestRef string
	// Cluster is a ClusterRequest of the object's own.
	Cluster *v1alpha1.ClusterRequestSpec
	// Permissions, RoleRefs and TokenLifetime are those of the AccessRequest.
	Permissions   []v1alpha1.Permission
	RoleRefs      []v1alpha1.RoleReference
	TokenLifetime time.Duration
	// OIDC is who gets the access, in place of a service account: usually the service provider itself, as an issuer knows it. It needs
	// Config.OIDCToken, whose tokens are good in every cluster of the issuer: not for clusters that don't trust each other, such as MCPs in
	// which tenants rule. Default: a service account, whose tokens are issued and renewed, and are good in this cluster only.
	OIDC *v1alpha1.OIDCIdentity
	// Labels are put on the requests, beside Config.Labels, over which they win. Default: none.
	Labels map[string]string
}

func (a *Ask) validate() error {
	set := 0
	for _, is := range []bool{a.ClusterRef != "", a.RequestRef != "", a.Cluster != nil} {
		if is {
			set++
		}
	}
	if set != 1 {
		return fmt.Errorf("%w: clusteraccess.Ask: set exactly one of ClusterRef, RequestRef and Cluster", framework.ErrInvalidConfig)
	}
	var wrong faults.List
	validateLabels(&wrong, a.Labels)
	return wrong.Of("clusteraccess.Ask")
}

// validateLabels says what is wrong with labels that users of the package have chosen.
func validateLabels(wrong *faults.List, chosen map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(chosen)) {
		for _, msg := range append(validation.IsQualifiedName(key), validation.IsValidLabelValue(chosen[key])...) {
			wrong.Add("Labels: %s=%s: %s", key, chosen[key], msg)
		}
		wrong.If(strings.HasPrefix(key, v1alpha1.GroupVersion.Group+"/"), "Labels: %s: labels of %s are those of this package", key, v1alpha1.GroupVersion.Group)
	}
}

// spec is that of the AccessRequest. own is the name of the object's own ClusterRequest.
func (a *Ask) spec(own string) v1alpha1.AccessRequestSpec {
	spec := v1alpha1.AccessRequestSpec{Permissions: a.Permissions, RoleRefs: a.RoleRefs, OIDC: a.OIDC}
	switch {
	case a.ClusterRef != "":
		spec.ClusterRef = &v1alpha1.LocalObjectReference{Name: a.ClusterRef}
	case a.RequestRef != "":
		spec.RequestRef = &v1alpha1.LocalObjectReference{Name: a.RequestRef}
	default:
		spec.RequestRef = &v1alpha1.LocalObjectReference{Name: own}
	}
	if a.TokenLifetime > 0 {
		spec.TokenLifetime = &metav1.Duration{Duration: a.TokenLifetime}
	}
	return spec
}

// complete fills in the defaults. The error lists every fault.
func (c *Config) complete() error {
	c.Namespace = cmp.Or(c.Namespace, namespaces.Of(c.Provider))
	c.Operator = cmp.Or(c.Operator, identity.Program())
	c.RetryPending = cmp.Or(c.RetryPending, DefaultRetryPending)
	c.RetryDenied = cmp.Or(c.RetryDenied, DefaultRetryDenied)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, DefaultIdleTimeout)
	var wrong faults.List
	if msgs := validation.IsDNS1123Label(c.Provider); len(msgs) > 0 {
		wrong.Add("Provider %q: %s", c.Provider, msgs[0])
	}
	if msgs := validation.IsDNS1123Label(c.Namespace); len(msgs) > 0 {
		wrong.Add("Namespace %q: %s", c.Namespace, msgs[0])
	}
	validateLabels(&wrong, c.Labels)
	wrong.If(c.Platform == nil, "Platform must be set")
	wrong.If(c.Scheme == nil, "Scheme must be set")
	wrong.If(c.Logger == nil, "Logger must be set")
	wrong.If(c.RetryPending < 0 || c.RetryDenied < 0 || c.IdleTimeout < 0, "RetryPending, RetryDenied and IdleTimeout must not be negative")
	return wrong.Of("clusteraccess.Config")
}

// validateAccesses returns an error that lists every fault.
func validateAccesses[D any](accesses []Access[D]) error {
	var wrong faults.List
	ids := map[string]bool{}
	for i, a := range accesses {
		if msgs := validation.IsDNS1123Label(a.ID); len(msgs) > 0 {
			wrong.Add("accesses[%d]: ID %q: %s", i, a.ID, msgs[0])
		}
		wrong.If(ids[a.ID], "accesses[%d]: there is another one with the ID %q", i, a.ID)
		ids[a.ID] = true
		wrong.If((a.Ask == nil) == (a.Fixed == nil), "accesses[%d]: set exactly one of Ask and Fixed", i)
		if a.Fixed != nil {
			a.Fixed.validate(&wrong, fmt.Sprintf("accesses[%d]: Fixed", i))
		}
	}
	return wrong.Of("clusteraccess.New")
}
