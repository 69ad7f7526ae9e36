package postgres_test

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	postgres "github.com/operatorkit/operatorkit/examples/serviceprovider"
	"github.com/operatorkit/operatorkit/examples/serviceprovider/v1alpha1"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess/namespaces"
	clustersv1alpha1 "github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// providerAccount is the service account of the provider.
const providerAccount = "postgres-provider"

// another is the namespace of another provider.
var another = namespaces.Of("redis")

// platform is a platform cluster with two providers, of which one is that of the example, with its permissions.
type platform struct {
	t      *testing.T
	kube   *operatortest.Instance
	scheme *runtime.Scheme
	admin  client.Client
}

func newPlatform(t *testing.T) *platform {
	t.Helper()
	scheme, err := postgres.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	p := &platform{t: t, kube: operatortest.Start(t, operatortest.Dedicated()), scheme: scheme}
	p.admin = p.client(p.kube.RESTConfig())
	for _, files := range []fs.FS{clustersv1alpha1.CRDs, v1alpha1.CRDs} {
		crds, err := operator.ReadCRDs(files)
		if err != nil {
			t.Fatal(err)
		}
		p.kube.InstallCRDs(t, crds...)
	}
	for _, file := range []string{postgres.PlatformPermissions, postgres.Clusters, postgres.ProviderConfig} {
		objects, err := postgres.Manifests(file)
		if err != nil {
			t.Fatal(err)
		}
		p.create(objects...)
	}
	p.create(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: another}},
		&corev1.ServiceAccount{ObjectMeta: in(another, "redis-provider")},
		&corev1.ServiceAccount{ObjectMeta: in(namespaces.DefaultClusters, "granter")},
		&corev1.ServiceAccount{ObjectMeta: in(metav1.NamespaceDefault, "nobody")},
		&corev1.Secret{ObjectMeta: in(namespaces.DefaultClusters, "mcp-admin")},
		accessRequest(postgres.Namespace), clusterRequest(postgres.Namespace), issued(postgres.Namespace),
		accessRequest(another), clusterRequest(another), issued(another),
	)
	return p
}

func in(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func accessRequest(namespace string) *clustersv1alpha1.AccessRequest {
	return &clustersv1alpha1.AccessRequest{
		ObjectMeta: in(namespace, "db"),
		Spec:       clustersv1alpha1.AccessRequestSpec{ClusterRef: &clustersv1alpha1.LocalObjectReference{Name: "workload"}},
	}
}

func clusterRequest(namespace string) *clustersv1alpha1.ClusterRequest {
	return &clustersv1alpha1.ClusterRequest{ObjectMeta: in(namespace, "db"), Spec: clustersv1alpha1.ClusterRequestSpec{Purpose: "workload"}}
}

// issued is a Secret as the granter issues it.
func issued(namespace string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: in(namespace, "db-kubeconfig")}
}

func (p *platform) client(config *rest.Config) client.Client {
	p.t.Helper()
	return operatortest.NewClient(p.t, config, p.scheme)
}

func (p *platform) create(objects ...client.Object) {
	p.t.Helper()
	for _, o := range objects {
		if err := p.admin.Create(p.t.Context(), o); err != nil {
			p.t.Fatalf("create %T %s: %v", o, o.GetName(), err)
		}
	}
}

// account returns a configuration with a token of a service account.
func (p *platform) account(namespace, name string) *rest.Config {
	p.t.Helper()
	token := &authenticationv1.TokenRequest{}
	if err := p.admin.SubResource("token").Create(p.t.Context(), &corev1.ServiceAccount{ObjectMeta: in(namespace, name)}, token); err != nil {
		p.t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(p.kube.RESTConfig())
	config.QPS, config.BearerToken = -1, token.Status.Token
	return config
}

// rules are what a client may do in a namespace, in words.
func (p *platform) rules(c client.Client, namespace string) []string {
	p.t.Helper()
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	if err := c.Create(p.t.Context(), review); err != nil {
		p.t.Fatal(err)
	}
	var all []string
	for _, r := range review.Status.ResourceRules {
		all = append(all, fmt.Sprintf("%v %v of %v %v", r.Verbs, r.Resources, r.APIGroups, r.ResourceNames))
	}
	for _, r := range review.Status.NonResourceRules {
		all = append(all, fmt.Sprintf("%v %v", r.Verbs, r.NonResourceURLs))
	}
	return all
}

func TestTheProviderMayDoWhatItNeedsOnThePlatformAndNothingElse(t *testing.T) {
	p := newPlatform(t)
	token := p.account(postgres.Namespace, providerAccount)
	c := p.client(token)
	ctx := t.Context()

	for what, do := range map[string]func() error{
		"read its config": func() error {
			return c.Get(ctx, client.ObjectKey{Name: postgres.Name}, &v1alpha1.PostgresConfig{})
		},
		"list what it asked for": func() error {
			return c.List(ctx, &clustersv1alpha1.AccessRequestList{}, client.InNamespace(postgres.Namespace))
		},
		"ask for access": func() error {
			ar := accessRequest(postgres.Namespace)
			ar.Name = "new"
			return client.IgnoreAlreadyExists(c.Create(ctx, ar, client.DryRunAll))
		},
		"ask for a cluster": func() error {
			r := clusterRequest(postgres.Namespace)
			r.Name = "new"
			return client.IgnoreAlreadyExists(c.Create(ctx, r, client.DryRunAll))
		},
		"ask for less":        func() error { return merge(ctx, c, accessRequest(postgres.Namespace), `{"spec":{"permissions":null}}`) },
		"take a request back": func() error { return c.Delete(ctx, accessRequest(postgres.Namespace), client.DryRunAll) },
		"use what is issued": func() error {
			return c.Get(ctx, client.ObjectKeyFromObject(issued(postgres.Namespace)), &corev1.Secret{})
		},
	} {
		operatortest.Eventually(t, what, do) // rights are not in force at once: an API server looks at roles through a cache
	}

	for what, do := range refusals(p, c, token) {
		if err := do(ctx); !apierrors.IsForbidden(err) {
			t.Errorf("%s: err = %v, want 403", what, err)
		}
	}

	// What is not in the table is no right either.
	nobody := p.client(p.account(metav1.NamespaceDefault, "nobody"))
	everywhere := []string{"[get list watch] [postgresconfigs] of [databases.examples.operatorkit.io] [postgres]"}
	own := append([]string{
		"[get list watch create patch delete] [clusterrequests accessrequests] of [clusters.operatorkit.io] []",
		"[get list watch] [secrets] of [] []",
	}, everywhere...)
	for namespace, want := range map[string][]string{
		postgres.Namespace: own, another: everywhere, namespaces.DefaultClusters: everywhere, metav1.NamespaceSystem: everywhere, metav1.NamespaceDefault: everywhere,
	} {
		others := p.rules(nobody, namespace)
		got := slices.DeleteFunc(p.rules(c, namespace), func(rule string) bool { return slices.Contains(others, rule) })
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("rights in namespace %s (-want +got):\n%s", namespace, diff)
		}
	}
}

func merge(ctx context.Context, c client.Client, o client.Object, document string) error {
	return c.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(document)), client.DryRunAll)
}

// refusals are what the provider may not do with its token.
func refusals(p *platform, c client.Client, token *rest.Config) map[string]func(context.Context) error {
	read := func(o client.Object) func(context.Context) error {
		return func(ctx context.Context) error { return c.Get(ctx, client.ObjectKeyFromObject(o), o) }
	}
	list := func(l client.ObjectList, options ...client.ListOption) func(context.Context) error {
		return func(ctx context.Context) error { return c.List(ctx, l, options...) }
	}
	create := func(o client.Object) func(context.Context) error {
		return func(ctx context.Context) error { return c.Create(ctx, o) }
	}
	patch := func(o client.Object, document string) func(context.Context) error {
		return func(ctx context.Context) error { return merge(ctx, c, o, document) }
	}
	status := func(o client.Object, document string) func(context.Context) error {
		return func(ctx context.Context) error {
			return c.Status().Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(document)))
		}
	}
	tokenOf := func(namespace, name string) func(context.Context) error {
		return func(ctx context.Context) error {
			return c.SubResource("token").Create(ctx, &corev1.ServiceAccount{ObjectMeta: in(namespace, name)}, &authenticationv1.TokenRequest{})
		}
	}
	// forged is a request that says by its label and annotation that somebody else asks.
	forged := func(o client.Object) client.Object {
		o.SetName("forged")
		o.SetLabels(map[string]string{clusteraccess.OwnerLabel: "v1-redis"})
		o.SetAnnotations(map[string]string{clusteraccess.OwnerAnnotation: "redis"})
		return o
	}
	cluster := &clustersv1alpha1.Cluster{ObjectMeta: in(namespaces.DefaultClusters, "workload")}
	admin := &corev1.Secret{ObjectMeta: in(namespaces.DefaultClusters, "mcp-admin")}
	role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}
	pod := corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: "x"}}, ServiceAccountName: "granter"}
	as := func(user rest.ImpersonationConfig) func(context.Context) error {
		config := rest.CopyConfig(token)
		config.Impersonate = user
		return func(ctx context.Context) error {
			other, err := client.New(config, client.Options{Scheme: p.scheme, Mapper: c.RESTMapper()}) // which discovers nothing of its own
			if err != nil {
				return err
			}
			return other.List(ctx, &corev1.SecretList{})
		}
	}
	return map[string]func(context.Context) error{
		"read a Secret by which a cluster is managed": read(admin),
		"list the Secrets beside the Clusters":        list(&corev1.SecretList{}, client.InNamespace(namespaces.DefaultClusters)),
		"list all Secrets":                            list(&corev1.SecretList{}),
		"change such a Secret":                        patch(admin, `{"stringData":{"kubeconfig":"mine"}}`),
		"list the Clusters":                           list(&clustersv1alpha1.ClusterList{}, client.InNamespace(namespaces.DefaultClusters)),
		"read a Cluster":                              read(cluster),
		"label a Cluster":                             patch(cluster, `{"metadata":{"labels":{"clusters.operatorkit.io/tenant":"mine"}}}`),
		"abandon a Cluster":                           patch(cluster, `{"metadata":{"annotations":{"clusters.operatorkit.io/abandon":"true"}}}`),
		"list a Cluster of its own":                   create(&clustersv1alpha1.Cluster{ObjectMeta: in(postgres.Namespace, "x")}),

		"read another provider's request":               read(accessRequest(another)),
		"list another provider's requests":              list(&clustersv1alpha1.AccessRequestList{}, client.InNamespace(another)),
		"list another provider's requests for clusters": list(&clustersv1alpha1.ClusterRequestList{}, client.InNamespace(another)),
		"list the requests of all":                      list(&clustersv1alpha1.AccessRequestList{}),
		"read what is issued to another provider":       read(issued(another)),
		"list what is issued to another provider":       list(&corev1.SecretList{}, client.InNamespace(another)),
		"delete another provider's request":             func(ctx context.Context) error { return c.Delete(ctx, accessRequest(another)) },
		"delete another provider's cluster":             func(ctx context.Context) error { return c.Delete(ctx, clusterRequest(another)) },
		"delete all of another provider's requests": func(ctx context.Context) error {
			return c.DeleteAllOf(ctx, &clustersv1alpha1.AccessRequest{}, client.InNamespace(another))
		},
		"change another provider's request":    patch(accessRequest(another), `{"spec":{"permissions":null}}`),
		"abandon another provider's request":   patch(accessRequest(another), `{"metadata":{"annotations":{"clusters.operatorkit.io/abandon":"true"}}}`),
		"take over another provider's request": patch(accessRequest(another), `{"metadata":{"labels":{"clusters.operatorkit.io/owner":"mine"}}}`),

		"ask in another provider's namespace":               create(forged(accessRequest(another))),
		"ask for a cluster in another provider's namespace": create(forged(clusterRequest(another))),
		"ask in the platform's namespace":                   create(forged(accessRequest(namespaces.DefaultClusters))),
		"ask for a cluster in the platform's namespace":     create(forged(clusterRequest(namespaces.DefaultClusters))),
		"ask in any other namespace":                        create(forged(accessRequest(metav1.NamespaceDefault))),
		"become a provider by a namespace of one":           create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaces.Of("mine")}}),

		"grant its own request":           status(accessRequest(postgres.Namespace), `{"status":{"phase":"Granted"}}`),
		"give itself a cluster":           status(clusterRequest(postgres.Namespace), `{"status":{"clusterRef":{"name":"workload"}}}`),
		"make a Secret":                   create(&corev1.Secret{ObjectMeta: in(postgres.Namespace, "x")}),
		"change what is issued to it":     patch(issued(postgres.Namespace), `{"stringData":{"kubeconfig":"mine"}}`),
		"delete what is issued to it":     func(ctx context.Context) error { return c.Delete(ctx, issued(postgres.Namespace)) },
		"change its config":               patch(&v1alpha1.PostgresConfig{ObjectMeta: in("", postgres.Name)}, `{"spec":{"pullSecret":"x"}}`),
		"read another config":             read(&v1alpha1.PostgresConfig{ObjectMeta: in("", "other")}),
		"read events beside the Clusters": list(&corev1.EventList{}, client.InNamespace(namespaces.DefaultClusters)),
		"list the namespaces":             list(&corev1.NamespaceList{}),

		"make a token of its own account":         tokenOf(postgres.Namespace, providerAccount),
		"make a token of another provider":        tokenOf(another, "redis-provider"),
		"make a token of the platform":            tokenOf(namespaces.DefaultClusters, "granter"),
		"be an administrator":                     as(rest.ImpersonationConfig{UserName: "admin", Groups: []string{"system:masters"}}),
		"be another provider":                     as(rest.ImpersonationConfig{UserName: "system:serviceaccount:" + another + ":redis-provider"}),
		"run a program as the platform":           create(&corev1.Pod{ObjectMeta: in(namespaces.DefaultClusters, "x"), Spec: pod}),
		"run a program in its own namespace":      create(&corev1.Pod{ObjectMeta: in(postgres.Namespace, "x"), Spec: pod}),
		"give itself a role in its own namespace": create(&rbacv1.RoleBinding{ObjectMeta: in(postgres.Namespace, "x"), RoleRef: role}),
		"give itself a role everywhere":           create(&rbacv1.ClusterRoleBinding{ObjectMeta: in("", "x"), RoleRef: role}),
		"add a rule to its role":                  patch(&rbacv1.Role{ObjectMeta: in(postgres.Namespace, providerAccount)}, `{"rules":null}`),
	}
}
