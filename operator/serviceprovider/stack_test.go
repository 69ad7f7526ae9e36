package serviceprovider_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess/granter"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess/namespaces"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess/scheduler"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusters"
	clustersv1alpha1 "github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// stack is all that serves the objects of one namespace: granter, scheduler, access and the runtime, in one process, with real
// credentials for every cluster.
type stack struct {
	namespace string
	// operator is the name of a second provider beside the first one, which brings the granter and the scheduler. It is empty for that one.
	operator string
	// aside has the granter and the scheduler reach the platform as programs of its own would, which nothing goes around.
	aside bool
	// wrap goes around the requests to the cluster of a role.
	wrap func(role string, next http.RoundTripper) http.RoundTripper
	// tells has events written to the onboarding cluster, where its users read them.
	tells bool
	// author is the provider.
	author serviceprovider.Reconciler[*Postgres, *ProviderConfig]
}

// reach is how the operator reaches the cluster of a role as its administrator.
func (s stack) reach(role string) *rest.Config {
	config := adminOf(role)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return s.wrap(role, next) })
	return config
}

// allowed is what a provider does in the clusters of an object.
func (s stack) allowed() clustersv1alpha1.Permission {
	return clustersv1alpha1.Permission{Namespace: s.namespace, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create", "patch", "delete"},
	}}}
}

// provider gets access for the objects.
func (s stack) provider(platformCluster *clusters.Cluster, logger micrologger.Logger) (*clusteraccess.Provider, error) {
	return clusteraccess.NewProvider(clusteraccess.ProviderConfig{
		Config: clusteraccess.Config{
			Operator: s.operator, Provider: "postgres", Namespace: s.namespace, Platform: platformCluster, Scheme: scheme, Logger: logger, RetryPending: accessPause,
			WrapTransport: func(access informer.Key, next http.RoundTripper) http.RoundTripper {
				_, rest, _ := strings.Cut(access.Name, "-")
				role, _, _ := strings.Cut(rest, "-")
				return s.wrap(role, next)
			},
		},
		MCP: clusteraccess.Permissions(s.allowed()), Workload: clusteraccess.Permissions(s.allowed()),
	})
}

// layout has the Clusters in a namespace of their own, and the provider in that of the objects.
func (s stack) layout() namespaces.Layout {
	return namespaces.Layout{Clusters: s.namespace + "-clusters", Provider: func(namespace string) string {
		if namespace == s.namespace {
			return "postgres"
		}
		return ""
	}}
}

// granters are the frameworks that answer the requests for access.
func (s stack) granters(deps *operator.Dependencies) ([]func(context.Context) error, error) {
	granting, err := granter.New(deps, granter.Config{
		Layout: s.layout(), Namespace: s.namespace,
		Policy: func(*clustersv1alpha1.Cluster, *clustersv1alpha1.AccessRequest) granter.Policy {
			return granter.Policy{Permissions: []clustersv1alpha1.Permission{s.allowed()}}
		},
		WrapTransport: func(cluster informer.Key, next http.RoundTripper) http.RoundTripper {
			return s.wrap(cluster.Name, next)
		},
	})
	if err != nil {
		return nil, err
	}
	placing, err := scheduler.New(deps, s.layout())
	if err != nil {
		return nil, err
	}
	var runs []func(context.Context) error
	for _, f := range append(granting, placing...) {
		runs = append(runs, f.Run)
	}
	return runs, nil
}

// manager runs the provider.
func (s stack) manager(logger micrologger.Logger) (ctrl.Manager, error) {
	platformCluster, err := clusters.New(platform, s.reach(platform), scheme)
	if err != nil {
		return nil, err
	}
	onboardingCluster, err := clusters.New(onboarding, s.reach(onboarding), scheme)
	if err != nil {
		return nil, err
	}
	access, err := s.provider(platformCluster, logger)
	if err != nil {
		return nil, err
	}
	b := serviceprovider.NewAPIReconcilerBuilder[*Postgres, *ProviderConfig]().
		PlatformCluster(platformCluster).OnboardingCluster(onboardingCluster).ClusterAccessReconciler(access).WorkloadCluster(true).
		EmptyObjectProvider(func() *Postgres { return &Postgres{} }).
		ProviderConfig(&ProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}).
		Operator(s.operator).Reconciler(s.author).Namespaces(s.namespace)
	if !s.tells {
		b.EventRecorder(&events{})
	}
	r, err := b.Build()
	if err != nil {
		return nil, err
	}
	skip, grace := true, 20*time.Second
	mgr, err := ctrl.NewManager(s.reach(platform), ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, Controller: ctrlconfig.Controller{SkipNameValidation: &skip},
		GracefulShutdownTimeout: &grace,
	})
	if err != nil {
		return nil, err
	}
	return mgr, errors.Join(mgr.Add(access), r.SetupWithManager(mgr, "postgres", nil))
}

// run runs everything until ctx ends.
func (s stack) run(ctx context.Context) error {
	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		return err
	}
	granters := s.reach(platform)
	if s.aside {
		granters = adminOf(platform)
	}
	deps, err := operator.NewDependencies(operator.DependenciesConfig{
		Name: cmp.Or(s.operator, "platform"), RESTConfig: granters, Scheme: scheme, Logger: logger, Namespaces: []string{s.namespace},
	})
	if err != nil {
		return err
	}
	defer deps.Close()
	operatortest.CountReconciliations(ctx, deps.Registry)
	operatortest.CountReconciliations(ctx, metrics.Registry)
	var runs []func(context.Context) error
	if s.operator == "" {
		if runs, err = s.granters(deps); err != nil {
			return err
		}
	}
	mgr, err := s.manager(logger)
	if err != nil {
		return err
	}
	runs = append(runs, mgr.Start)
	errs := make([]error, len(runs))
	var running sync.WaitGroup
	for i, run := range runs {
		running.Go(func() { errs[i] = run(ctx) })
	}
	running.Wait()
	return errors.Join(errs...)
}

// prepare is what the platform team does: it lists the clusters, and configures the provider.
func (s stack) prepare(ctx context.Context) error {
	clusters := s.layout().Clusters
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusters}}}
	for role, labels := range map[string]map[string]string{mcp: {clusteraccess.TenantLabel: s.namespace}, workload: nil} {
		kubeconfig, err := os.ReadFile(planes[role].kube.Kubeconfig())
		if err != nil {
			return err
		}
		objects = append(objects,
			&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: clusters, Name: role + "-admin"},
				Data:       map[string][]byte{clustersv1alpha1.KubeconfigKey: kubeconfig},
			},
			&clustersv1alpha1.Cluster{
				ObjectMeta: metav1.ObjectMeta{Namespace: clusters, Name: role, Labels: labels},
				Spec: clustersv1alpha1.ClusterSpec{
					Purposes: []string{role}, Kubeconfig: clustersv1alpha1.KubeconfigReference{SecretName: role + "-admin"},
				},
			})
	}
	objects = append(objects, s.config())
	var errs []error
	for _, o := range objects {
		errs = append(errs, planes[platform].user.Create(ctx, o))
	}
	return errors.Join(errs...)
}

func (s stack) config() *ProviderConfig {
	return &ProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}, Spec: ProviderConfigSpec{Version: "16"}}
}

// notOfKubernetes leaves out the ConfigMap that every namespace has.
var notOfKubernetes = fields.OneTermNotEqualSelector("metadata.name", "kube-root-ca.crt")

// traces counts what there is of access and of the provider's work, in all clusters.
func (s stack) traces(ctx context.Context) (map[string]int, error) {
	granted := client.MatchingLabels{"app.kubernetes.io/managed-by": "operatorkit-granter"}
	found := map[string]int{}
	count := func(role string, list client.ObjectList, options ...client.ListOption) error {
		err := planes[role].user.List(ctx, list, append(options, client.InNamespace(s.namespace))...)
		if err != nil {
			return fmt.Errorf("list in the %s cluster: %w", role, err)
		}
		items, err := listed(list)
		if err == nil && items > 0 {
			found[fmt.Sprintf("%s %T", role, list)] = items
		}
		return err
	}
	errs := []error{
		count(onboarding, &PostgresList{}), count(platform, &clustersv1alpha1.ClusterRequestList{}),
		count(platform, &clustersv1alpha1.AccessRequestList{}), count(platform, &corev1.SecretList{}, granted),
	}
	for _, role := range []string{mcp, workload} {
		errs = append(errs, count(role, &corev1.ServiceAccountList{}, granted), count(role, &rbacv1.RoleList{}, granted),
			count(role, &rbacv1.RoleBindingList{}, granted), count(role, &corev1.ConfigMapList{}, client.MatchingFieldsSelector{Selector: notOfKubernetes}))
	}
	return found, errors.Join(errs...)
}
