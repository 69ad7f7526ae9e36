package story

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/examples/internal/demo"
	postgres "github.com/operatorkit/operatorkit/examples/serviceprovider"
	"github.com/operatorkit/operatorkit/examples/serviceprovider/v1alpha1"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/logging"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess/namespaces"
	clustersv1alpha1 "github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// world is where the story takes place. The platform cluster is that of the Demo's client.
type world struct {
	*demo.Demo

	scheme *runtime.Scheme
	// onboarding and workload may do everything in their clusters.
	onboarding, workload client.Client
	// wrap may see to what the provider sends.
	wrap Wrap
}

// providerUser is the account that the provider has on the platform, and the user that it is in the onboarding cluster.
const providerUser = "postgres-provider"

// prepare makes everything but the platform's operator: the APIs, who may do what, the clusters, and the provider.
func (w *world) prepare(ctx context.Context, d *demo.Demo) (err error) {
	w.Demo, w.scheme = d, d.Client.Scheme()
	if w.onboarding, err = w.newClient(d.Clusters[Onboarding].RESTConfig()); err != nil {
		return err
	}
	if w.workload, err = w.newClient(d.Clusters[workload].RESTConfig()); err != nil {
		return err
	}
	w.Step("listing an MCP for each of two tenants, and a workload cluster with room for one database")
	if err := w.install(ctx); err != nil {
		return err
	}
	w.Go("the node of the workload cluster", w.node)
	return w.startProvider(ctx)
}

func (w *world) newClient(config *rest.Config) (client.Client, error) {
	c, err := client.New(config, client.Options{Scheme: w.scheme})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return c, nil
}

// install makes what is there before anybody orders something.
func (w *world) install(ctx context.Context) error {
	if err := w.Quietly(ctx, "crds", "--apply"); err != nil {
		return err
	}
	if err := w.serve(ctx); err != nil {
		return err
	}
	for _, to := range []struct {
		client client.Client
		files  []string
	}{
		{w.Client, []string{postgres.PlatformPermissions, postgres.Clusters, postgres.ProviderConfig}},
		{w.onboarding, []string{postgres.OnboardingPermissions, postgres.Users}},
	} {
		for _, file := range to.files {
			if err := create(ctx, to.client, file); err != nil {
				return err
			}
		}
	}
	for _, name := range []string{mcp, workload} {
		kubeconfig, err := os.ReadFile(w.Clusters[name].Kubeconfig())
		if err != nil {
			return fmt.Errorf("read the kubeconfig of cluster %s: %w", name, err)
		}
		admin := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespaces.DefaultClusters, Name: name + "-admin"},
			Data:       map[string][]byte{clustersv1alpha1.KubeconfigKey: kubeconfig},
		}
		if err := w.Client.Create(ctx, admin); err != nil {
			return err
		}
	}
	return nil
}

func create(ctx context.Context, in client.Client, file string) error {
	objects, err := postgres.Manifests(file)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := in.Create(ctx, o); err != nil {
			return fmt.Errorf("create %T %s of %s: %w", o, o.GetName(), file, err)
		}
	}
	return nil
}

// serve has the clusters serve the provider's API: users order in the onboarding cluster, and the configuration is in that of
// the platform.
func (w *world) serve(ctx context.Context) error {
	crds, err := operator.ReadCRDs(v1alpha1.CRDs)
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return err
	}
	for _, crd := range crds {
		config, served, list := w.RESTConfig, w.Client.(client.Client), client.ObjectList(&v1alpha1.PostgresConfigList{})
		if crd.Spec.Names.Kind == v1alpha1.PostgresKind {
			config, served, list = w.Clusters[Onboarding].RESTConfig(), w.onboarding, &v1alpha1.PostgresList{}
		}
		c, err := client.New(config, client.Options{Scheme: scheme})
		if err != nil {
			return fmt.Errorf("make a client: %w", err)
		}
		if err := c.Create(ctx, crd); err != nil {
			return err
		}
		err = w.Wait(ctx, crd.Name+" is served", func(ctx context.Context) (bool, error) {
			err := served.List(ctx, list)
			return err == nil, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// startProvider runs the provider with the token of its account on the platform, and as a user of the onboarding cluster.
func (w *world) startProvider(ctx context.Context) error {
	log, err := os.Create(filepath.Join(w.Folder, "provider.log"))
	if err != nil {
		return fmt.Errorf("make a log: %w", err)
	}
	config := postgres.Config{}
	config.Logger, err = logging.New(logging.Config{Writer: log, Format: logging.FormatText})
	if err != nil {
		return errors.Join(err, log.Close())
	}
	if config.Platform, err = w.account(ctx); err != nil {
		return errors.Join(err, log.Close())
	}
	if config.Onboarding, err = w.Clusters[Onboarding].User(providerUser); err != nil {
		return errors.Join(err, log.Close())
	}
	config.Platform, config.Onboarding = w.wrap(Platform, config.Platform), w.wrap(Onboarding, config.Onboarding)
	provider, err := postgres.New(config)
	if err != nil {
		return errors.Join(err, log.Close())
	}
	w.Step("starting the provider, with an account that may read its config and ask for access, and no more")
	w.Note("its log is in    " + log.Name())
	w.Go("the provider", func(ctx context.Context) error { return errors.Join(provider.Start(ctx), log.Close()) })
	return nil
}

// account returns how the provider reaches the platform: by a token of its service account, as a Pod would have it.
func (w *world) account(ctx context.Context) (*rest.Config, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: postgres.Namespace, Name: providerUser}}
	day := int64((24 * time.Hour).Seconds())
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &day}}
	if err := w.Client.SubResource("token").Create(ctx, account, token); err != nil {
		return nil, fmt.Errorf("make a token of the provider: %w", err)
	}
	config := rest.AnonymousClientConfig(w.RESTConfig)
	config.QPS, config.BearerToken = w.RESTConfig.QPS, token.Status.Token
	return config, nil
}
