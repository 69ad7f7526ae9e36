package postgres_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	postgres "github.com/operatorkit/operatorkit/examples/serviceprovider"
	"github.com/operatorkit/operatorkit/examples/serviceprovider/story"
	"github.com/operatorkit/operatorkit/examples/serviceprovider/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// databases is the API group of the provider.
var databases = v1alpha1.GroupVersion.Group

// right is to do something with the objects of a resource in a cluster.
type right struct{ cluster, verb, group, resource string }

// String implements fmt.Stringer.
func (r right) String() string { return r.verb + " " + r.resource }

// inReserve are rights that nothing of the story takes, and why the provider has them.
var inReserve = map[right]string{
	{story.Platform, "patch", "clusters.operatorkit.io", "clusterrequests"}: "to take over what was asked for under a former name",
	{story.Platform, "patch", "clusters.operatorkit.io", "accessrequests"}:  "the same, to ask for something else, and to let go of a cluster that is gone",
	{story.Onboarding, "create", "", "events"}:                              "to tell of errors",
	{story.Onboarding, "patch", "", "events"}:                               "to tell of them again",
	{story.Platform, "list", databases, "postgresconfigs"}:                  "for API servers that don't begin a watch with a list",
	{story.Platform, "list", "", "secrets"}:                                 "the same",
	{story.Onboarding, "list", databases, "postgreses"}:                     "the same",
}

// rights are what the provider makes use of. They are safe for concurrent use.
type rights struct {
	faults map[string]*operatortest.Faults
	mu     sync.Mutex
	used   map[right]bool
}

func newRights() *rights {
	return &rights{faults: map[string]*operatortest.Faults{}, used: map[right]bool{}}
}

// in returns a configuration for a cluster whose requests are noted.
func (r *rights) in(cluster string, config *rest.Config) *rest.Config {
	faults := operatortest.NewFaults()
	faults.On(func(request operatortest.Request) bool {
		resource := request.Resource
		if request.Subresource != "" {
			resource += "/" + request.Subresource
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.used[right{cluster, request.Verb, request.Group, resource}] = true
		return false
	}, operatortest.FailBefore())
	r.faults[cluster] = faults
	return faults.Wrap(config)
}

// check returns an error that names the rights in the files, by cluster, that were not used, those in reserve excepted, and what was refused.
func (r *rights) check(files map[string]string) error {
	r.mu.Lock()
	used := maps.Clone(r.used)
	r.mu.Unlock() // what is asked of the faults takes their lock, with which requests are noted
	var errs []error
	for cluster, file := range files {
		objects, err := postgres.Manifests(file)
		if err != nil {
			return err
		}
		for _, o := range objects {
			for _, has := range rightsIn(cluster, o) {
				if !used[has] && inReserve[has] == "" {
					errs = append(errs, fmt.Errorf("in the %s cluster the right to %s was not used", cluster, has))
				}
			}
		}
		for _, write := range r.faults[cluster].Writes() {
			if write.Status == http.StatusForbidden {
				errs = append(errs, fmt.Errorf("in the %s cluster %s was forbidden", cluster, write))
			}
		}
	}
	return errors.Join(errs...)
}

// rightsIn are the rights that a role gives.
func rightsIn(cluster string, o client.Object) []right {
	var rules []rbacv1.PolicyRule
	switch role := o.(type) {
	case *rbacv1.Role:
		rules = role.Rules
	case *rbacv1.ClusterRole:
		rules = role.Rules
	}
	var all []right
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all = append(all, right{cluster, verb, group, resource})
				}
			}
		}
	}
	return all
}
