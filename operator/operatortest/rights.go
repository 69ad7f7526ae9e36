package operatortest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Deployed is an operator as it is deployed: with a service account and the rights that its manifests give that, and none beyond.
type Deployed struct {
	// Objects returns the ServiceAccount, the Roles and ClusterRoles, and their bindings, of an operator that is in a namespace and looks at that
	// one. Other objects are passed over. What is not in that namespace gets a name of its own. Required.
	Objects func(ctx context.Context, namespace string) ([]client.Object, error)
	// Start runs the operator as its manifests do, such as with leader election, see Scenario.Start. Default: that of the scenario.
	Start func(ctx context.Context, cfg *rest.Config, namespace string) error
	// Conflicts picks writes that meet a conflict when they are made for the first time, for operators that read again then what they write.
	// Default: none.
	Conflicts Match
}

// Rights proves that the manifests of an operator give it exactly the rights that it needs: it goes through scenarios, each once, with the
// operator as [Scenario.Deployed] has it, and with the token of its service account. It fails t when a scenario does not come to its end,
// and names each request that was refused, and each rule, by verb and resource, that no request has used in any of them, as the audit log of
// the API server tells. A rule for all namespaces is used by requests only that have no role in their namespace which is enough.
//
// What an operator does rarely is brought about: the API server streams no lists, so that it asks for them, and a write of it fails once in
// each phase that has it, of which it tells by an event, and by counting that up the next time. So let the user change what he has created,
// and delete it. What is needed for conflicts only takes Deployed.Conflicts, and for other mishaps it is to be part of the scenario.
//
// The control plane may be one with more controllers (Start WithConfig), whose RESTConfig is the scenario's Config. On one
// that this package has not started it skips t: its audit log can't be read. Rules of cluster roles that are the cluster's own, such as those of
// system:auth-delegator, are not looked at.
func Rights(t testing.TB, scenarios ...Scenario) {
	t.Helper()
	unused := map[string]int{}
	for _, scenario := range scenarios {
		if scenario.Config == nil {
			scenario.Config = Start(t).RESTConfig()
		}
		dataDir, _ := dataDirs.Load(scenario.Config.Host)
		if dataDir == nil || dataDir == "" {
			t.Skipf("scenario %q: rights take the audit log of a control plane that this package has started: unset %s, or leave Config empty", scenario.Name, KubeconfigVariable)
		}
		found, err := rightsOf(t.Context(), dataDir.(string), scenario)
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range found.faults {
			t.Errorf("scenario %q: %s", scenario.Name, fault)
		}
		for _, right := range found.unused {
			unused[right]++
		}
	}
	for _, right := range slices.Sorted(maps.Keys(unused)) {
		if unused[right] == len(scenarios) {
			t.Errorf("never used: %s", right)
		}
	}
}

// foundRights is what is wrong with the rights in one scenario. What is unused there may be used in another one.
type foundRights struct{ faults, unused []string }

func rightsOf(ctx context.Context, dataDir string, scenario Scenario) (*foundRights, error) {
	scenario = scenario.withDefaults()
	err := scenario.validate()
	if err == nil && (scenario.Deployed == nil || scenario.Deployed.Objects == nil) {
		err = errors.New("deployed must not be nil: make the scenario with package commandtest, or say what the manifests give")
	}
	if err != nil {
		return nil, fmt.Errorf("scenario %q: %w", scenario.Name, err)
	}
	if scenario.Deployed.Start == nil {
		scenario.Deployed.Start = scenario.Start
	}
	r := &rights{deployed: *scenario.Deployed, dataDir: dataDir}
	scenario.Start = r.start
	for i := range scenario.Phases {
		do := scenario.Phases[i].Do
		scenario.Phases[i].Do = func(ctx context.Context, user client.Client, namespace string) error {
			r.provocation.arm()
			if do == nil {
				return nil
			}
			return do(ctx, user, namespace)
		}
	}
	scenario.Neighbour = nil
	s, err := newSweep(scenario)
	if err != nil {
		return nil, fmt.Errorf("scenario %q: %w", scenario.Name, err)
	}
	defer s.connections.CloseIdleConnections()
	r.user = s.user
	s.afterPhase = func(ctx context.Context, run *crashRun, phase Phase) *Failure {
		if phase.Name != scenario.Phases[len(scenario.Phases)-1].Name {
			return nil
		}
		return r.look(ctx, run)
	}
	result, err := s.play(ctx, nil)
	if err = errors.Join(err, r.cleanUp(context.WithoutCancel(ctx))); err != nil {
		return nil, fmt.Errorf("scenario %q: %w", scenario.Name, err)
	}
	found := &foundRights{faults: r.refused()}
	if result.failure != nil {
		found.faults = append(found.faults, fmt.Sprintf("phase %q: %s", result.failure.Phase, result.failure.Reason))
		return found, nil
	}
	found.unused = r.unused()
	return found, nil
}

// rights are those of an operator in one run.
type rights struct {
	deployed Deployed
	dataDir  string
	user     client.Client

	// What there is once the operator was started.
	account     *corev1.ServiceAccount
	granted     []granted
	elsewhere   []client.Object
	provocation provocation

	requests []audited
}

// granted is a role that the operator has.
type granted struct {
	name  string
	rules []rbacv1.PolicyRule
	// where are the namespaces in which it is bound; nil is everywhere.
	where []string
}

// gives tells whether the role, which is not bound everywhere, gives the right to a request by one of its verbs.
func (g granted) gives(a audited, verb string) bool {
	return a.ObjectRef != nil && slices.Contains(g.where, a.ObjectRef.Namespace) && slices.ContainsFunc(g.rules, func(rule rbacv1.PolicyRule) bool {
		return slices.ContainsFunc(rule.APIGroups, func(group string) bool {
			return slices.ContainsFunc(rule.Resources, func(resource string) bool {
				return (slices.Contains(rule.Verbs, verb) || slices.Contains(rule.Verbs, rbacv1.VerbAll)) && a.uses(group, resource, verb, rule.ResourceNames)
			})
		})
	})
}

// start gives the operator its rights, and has it start with them.
func (r *rights) start(ctx context.Context, cfg *rest.Config, namespace string) error {
	if r.account == nil {
		if err := r.grant(ctx, namespace); err != nil {
			return fmt.Errorf("give the operator its rights: %w", err)
		}
		r.awaitKnown(ctx)
		if faults, ok := ctx.Value(faultsKey{}).(*Faults); ok {
			faults.On(r.conflicts(), Conflict())
			faults.On(r.provocation.matches, InternalError())
		}
	}
	token := &authenticationv1.TokenRequest{}
	if err := r.user.SubResource("token").Create(ctx, r.account.DeepCopy(), token); err != nil {
		return fmt.Errorf("ask for a token: %w", err)
	}
	config := rest.AnonymousClientConfig(cfg)
	config.BearerToken, config.WrapTransport, config.QPS = token.Status.Token, cfg.WrapTransport, cfg.QPS
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return unstreamed{next} })
	return r.deployed.Start(ctx, config, namespace)
}

// conflicts matches the writes that are to meet a conflict, each once.
func (r *rights) conflicts() Match {
	var met sync.Map
	return func(q Request) bool {
		if r.deployed.Conflicts == nil || !r.deployed.Conflicts(q) {
			return false
		}
		_, again := met.LoadOrStore(q.String(), true)
		return !again
	}
}

// unstreamed is the way to an API server that streams no lists.
type unstreamed struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (u unstreamed) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		return noStreaming()
	}
	return u.next.RoundTrip(r)
}

// WrappedRoundTripper lets apimachinery's helpers reach the transport below.
func (u unstreamed) WrappedRoundTripper() http.RoundTripper { return u.next }

// provocation has each write of an operator fail once in each phase, so that it tells of that by an event, and in the next phase that has the
// write by another one that counts the first one up. It does so for the same message only: no other write fails before the one is tried again.
type provocation struct {
	mu      sync.Mutex
	failed  map[string]bool // the writes that have failed in the phase; nil before the first one
	pending string          // the one that was not tried again yet
}

// arm is called when a phase begins.
func (p *provocation) arm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed, p.pending = map[string]bool{}, ""
}

// matches tells whether a request is to fail. Finalizers, by JSON patches, are written once.
func (p *provocation) matches(q Request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed == nil || q.N == 0 || q.Verb != "patch" || q.ContentType == string(types.JSONPatchType) {
		return false
	}
	write := q.String()
	if write == p.pending {
		p.pending = ""
		return false
	}
	if p.pending != "" || p.failed[write] {
		return false
	}
	p.failed[write], p.pending = true, write
	return true
}

// grant creates what the manifests give the operator its rights by.
func (r *rights) grant(ctx context.Context, namespace string) error {
	objects, err := r.deployed.Objects(ctx, namespace)
	if err != nil {
		return err
	}
	own := r.read(objects, namespace)
	if r.account == nil {
		return errors.New("there is no ServiceAccount among the objects")
	}
	for _, o := range objects {
		var ref *rbacv1.RoleRef
		switch o := o.(type) {
		case *corev1.ServiceAccount, *rbacv1.Role, *rbacv1.ClusterRole:
		case *rbacv1.RoleBinding:
			ref = &o.RoleRef
		case *rbacv1.ClusterRoleBinding:
			ref = &o.RoleRef
		default:
			continue
		}
		if o.GetNamespace() != namespace {
			// There is one in each run.
			o.SetName(o.GetName() + "-" + namespace)
			r.elsewhere = append(r.elsewhere, o)
		}
		if ref != nil && own[roleName(ref.Kind, o.GetNamespace(), ref.Name)] && (ref.Kind == "ClusterRole" || o.GetNamespace() != namespace) {
			ref.Name += "-" + namespace
		}
		if err := r.user.Create(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// awaitKnown waits until the API server knows the rights: it hears of them a moment after they were given, and what it refuses until then
// does not lack. A right that it does not come to know within a minute is told of by the run.
func (r *rights) awaitKnown(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, role := range r.granted {
		where := role.where
		if where == nil {
			where = []string{metav1.NamespaceAll}
		}
		for _, rule := range role.rules {
			if len(rule.Resources) == 0 {
				continue
			}
			attributes := resourceOf(rule)
			for _, attributes.Namespace = range where {
				request := authorizationv1.SubjectAccessReviewSpec{User: r.username(), ResourceAttributes: attributes}
				for allowed(ctx, r.user, request) != nil && ctx.Err() == nil {
					time.Sleep(pollPeriod)
				}
			}
		}
	}
}

// read takes note of the account and of the roles that are bound, and returns the names of the roles that are among the objects.
func (r *rights) read(objects []client.Object, namespace string) map[string]bool {
	own, everywhere, bound := map[string]bool{}, map[string]bool{}, map[string][]string{}
	var roles []granted
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.ServiceAccount:
			r.account = o
		case *rbacv1.Role:
			roles = append(roles, granted{name: roleName("Role", o.Namespace, o.Name), rules: o.Rules})
		case *rbacv1.ClusterRole:
			roles = append(roles, granted{name: roleName("ClusterRole", "", o.Name), rules: o.Rules})
		case *rbacv1.RoleBinding:
			name := roleName(o.RoleRef.Kind, o.Namespace, o.RoleRef.Name)
			bound[name] = append(bound[name], o.Namespace)
		case *rbacv1.ClusterRoleBinding:
			everywhere[roleName(o.RoleRef.Kind, "", o.RoleRef.Name)] = true
		}
	}
	for _, role := range roles {
		own[role.name] = true
		if role.where = bound[role.name]; everywhere[role.name] {
			role.where = nil
		} else if role.where == nil {
			continue
		}
		// Names of namespaces are other ones in each run.
		role.name = strings.Replace(role.name, " "+namespace+"/", " ", 1)
		r.granted = append(r.granted, role)
	}
	return own
}

// roleName names a role, which has no namespace if it is a cluster role, wherever it is bound.
func roleName(kind, namespace, name string) string {
	if kind == "ClusterRole" {
		return kind + " " + name
	}
	return kind + " " + namespace + "/" + name
}

// cleanUp deletes what does not go with the namespace of the run.
func (r *rights) cleanUp(ctx context.Context) error {
	var errs []error
	for _, o := range r.elsewhere {
		errs = append(errs, client.IgnoreNotFound(r.user.Delete(ctx, o)))
	}
	return errors.Join(errs...)
}

// look waits for what the API server has noted, until every rule is used, or nothing comes any more.
func (r *rights) look(ctx context.Context, run *crashRun) *Failure {
	deadline := time.Now().Add(patience * run.scenario.Settle)
	for {
		var err error
		if r.requests, err = auditedOf(r.dataDir, r.username()); err != nil {
			return &Failure{Reason: err.Error()}
		}
		if len(r.unused()) == 0 || time.Now().After(deadline) {
			return nil
		}
		select {
		case <-time.After(pollPeriod):
		case <-ctx.Done():
			return nil
		}
	}
}

func (r *rights) username() string {
	if r.account == nil {
		return ""
	}
	return "system:serviceaccount:" + r.account.Namespace + ":" + r.account.Name
}

// refused names the requests that the operator has no right to, each once.
func (r *rights) refused() []string {
	requests, err := auditedOf(r.dataDir, r.username())
	if err != nil {
		return []string{err.Error()}
	}
	var faults []string
	for _, a := range requests {
		fault := "refused: " + a.String()
		if a.refused() && !slices.Contains(faults, fault) {
			faults = append(faults, fault)
		}
	}
	return faults
}

// unused names the rights that no request has used.
func (r *rights) unused() []string {
	var unused []string
	for _, g := range r.granted {
		for _, rule := range g.rules {
			for _, missing := range unusedOf(rule, func(verb string) []audited { return r.needing(g, verb) }) {
				unused = append(unused, missing+" of "+g.name)
			}
		}
	}
	return unused
}

// needing returns the requests for which it may take a role to give the right by a verb. For a role that is bound everywhere they are those
// to which no role gives it that is bound in their namespace. Roles in several namespaces are for the same requests there: what is done in
// one of them is enough.
func (r *rights) needing(role granted, verb string) []audited {
	if role.where != nil {
		return r.requests
	}
	narrower := func(a audited) bool {
		return slices.ContainsFunc(r.granted, func(g granted) bool {
			return g.where != nil && !slices.ContainsFunc(a.verbs(), func(used string) bool {
				return (verb == used || verb == rbacv1.VerbAll) && !g.gives(a, used)
			})
		})
	}
	return slices.DeleteFunc(slices.Clone(r.requests), narrower)
}

// unusedOf returns the rights of a rule that no request has used, of those that need one by a verb. A rule with names is used when it is
// for one of them.
func unusedOf(rule rbacv1.PolicyRule, needing func(verb string) []audited) []string {
	var unused []string
	for _, verb := range rule.Verbs {
		requests := needing(verb)
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				if !slices.ContainsFunc(requests, func(a audited) bool { return a.uses(group, resource, verb, rule.ResourceNames) }) {
					unused = append(unused, verb+" "+strings.TrimSuffix(resource+"."+group, "."))
				}
			}
		}
	}
	return unused
}
