package operatortest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
)

// establishTimeout is when to give up on a definition that is not served.
const establishTimeout = hangLimit

// InstallCRDs creates the definitions, or updates the ones that are there, and
// returns when their objects can be listed in every served version and found by
// discovery. The definitions stay when the test ends, because other tests may
// use them: tests that share a control plane should agree on a definition. The
// arguments are not changed.
func (i *Instance) InstallCRDs(t testing.TB, definitions ...*apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	for _, definition := range definitions {
		if err := i.installCRD(t.Context(), definition.DeepCopy()); err != nil {
			t.Fatalf("operatortest: install CustomResourceDefinition %s: %v", definition.Name, err)
		}
	}
}

// installedCRD is a definition that was installed and served, and what of it would change if somebody changed it.
type installedCRD struct {
	definition *apiextensionsv1.CustomResourceDefinition
	uid        types.UID
	generation int64
}

// isInstalled tells whether a definition was installed before and nobody has changed it since. An update, even without a change, costs the
// API server more than most tests.
func (i *Instance) isInstalled(ctx context.Context, client apiextensions.Interface, definition *apiextensionsv1.CustomResourceDefinition) bool {
	i.mu.Lock()
	before, ok := i.installed[definition.Name]
	i.mu.Unlock()
	if !ok || !equality.Semantic.DeepEqual(before.definition, definition) {
		return false
	}
	now, err := client.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, definition.Name, metav1.GetOptions{})
	return err == nil && now.UID == before.uid && now.Generation == before.generation && now.DeletionTimestamp == nil
}

// noteInstalled remembers a definition that is served.
func (i *Instance) noteInstalled(definition, served *apiextensionsv1.CustomResourceDefinition) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.installed == nil {
		i.installed = map[string]installedCRD{}
	}
	i.installed[definition.Name] = installedCRD{definition: definition, uid: served.UID, generation: served.Generation}
}

func (i *Instance) installCRD(ctx context.Context, definition *apiextensionsv1.CustomResourceDefinition) error {
	config := i.RESTConfig()
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	defer i.closeIdle()
	client, err := apiextensions.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return err
	}
	objects, err := dynamic.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return err
	}
	if i.isInstalled(ctx, client, definition) {
		return nil
	}
	wanted := definition.DeepCopy()
	if err := createOrUpdateCRD(ctx, client, definition); err != nil {
		return err
	}

	var current *apiextensionsv1.CustomResourceDefinition
	notYet := errors.New("never asked")
	err = wait.PollUntilContextTimeout(ctx, pollPeriod, establishTimeout, true, func(ctx context.Context) (bool, error) {
		current, notYet = served(ctx, client, objects, definition)
		return notYet == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait until it is served: %w: %w", err, notYet)
	}
	i.noteInstalled(wanted, current)
	return nil
}

func createOrUpdateCRD(ctx context.Context, client apiextensions.Interface, definition *apiextensionsv1.CustomResourceDefinition) error {
	definitions := client.ApiextensionsV1().CustomResourceDefinitions()
	definition.ResourceVersion = ""
	_, err := definitions.Create(ctx, definition, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		current, err := definitions.Get(ctx, definition.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		definition.ResourceVersion = current.ResourceVersion
		_, err = definitions.Update(ctx, definition, metav1.UpdateOptions{})
		return err
	})
}

// served returns the definition when clients can use it, else what is missing.
func served(
	ctx context.Context, client apiextensions.Interface, objects dynamic.Interface, definition *apiextensionsv1.CustomResourceDefinition,
) (*apiextensionsv1.CustomResourceDefinition, error) {
	current, err := client.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, definition.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	established := false
	for _, condition := range current.Status.Conditions {
		if condition.Type == apiextensionsv1.NamesAccepted && condition.Status == apiextensionsv1.ConditionFalse {
			return nil, fmt.Errorf("names not accepted: %s", condition.Message)
		}
		established = established || condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue
	}
	if !established {
		return nil, errors.New("not established yet")
	}
	for _, version := range definition.Spec.Versions {
		if !version.Served {
			continue
		}
		resource := schema.GroupVersionResource{Group: definition.Spec.Group, Version: version.Name, Resource: definition.Spec.Names.Plural}
		if _, err := objects.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
			return nil, fmt.Errorf("list %s: %w", resource, err)
		}
		if err := discovered(client, resource); err != nil {
			return nil, err
		}
	}
	return current, nil
}

func discovered(client apiextensions.Interface, resource schema.GroupVersionResource) error {
	list, err := client.Discovery().ServerResourcesForGroupVersion(resource.GroupVersion().String())
	if err != nil {
		return fmt.Errorf("discover %s: %w", resource.GroupVersion(), err)
	}
	for _, found := range list.APIResources {
		if found.Name == resource.Resource {
			return nil
		}
	}
	return fmt.Errorf("discover %s: not there yet", resource)
}
