package manifest_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/manifest"
)

// wish is a config map with the files of the service that is wanted; without files it is to go.
const wish = "wish"

// wanted makes the service of a wish.
func wanted(ctx context.Context, c client.Client, namespace string) (*carrier.Service, error) {
	var w corev1.ConfigMap
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: wish}, &w); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	s := &carrier.Service{Key: client.ObjectKey{Namespace: namespace, Name: "web"}, Owner: carrier.Owner{Namespace: "platform", Name: w.Data["owner"]}}
	content := files{}
	for name, text := range w.Data {
		if strings.HasSuffix(name, ".yaml") {
			content[name] = text
		}
	}
	if len(content) == 0 {
		return s, nil
	}
	s.Config.SyncMode = v1alpha1.SyncModeContinuousWithDriftDetection
	s.Source = &source{files: content, folder: "."}
	s.Entry = &v1alpha1.ServiceWithValues{Name: "web", Namespace: namespace, Template: "web", Version: w.Data["version"]}
	s.Template = &v1alpha1.ServiceTemplate{Spec: v1alpha1.ServiceTemplateSpec{Resources: &v1alpha1.FileSource{}}}
	var err error
	s.Fingerprint, err = statemanager.Fingerprint(content)
	return s, err
}

// operate carries out wishes until the context ends.
func operate(ctx context.Context, cfg *rest.Config, namespace string) error {
	cluster, err := newCluster(cfg)
	if err != nil {
		return err
	}
	manifests, err := manifest.New(manifest.Config{})
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		again := 20 * time.Millisecond
		s, err := wanted(ctx, cluster.client, namespace)
		if err == nil && s != nil {
			var result *carrier.Result
			if result, err = manifests.Compute(ctx, cluster, cluster.client, s); err == nil && len(result.Changes) > 0 {
				err = manifests.CarryOut(ctx, cluster, s, result)
			}
		}
		if err != nil {
			again = 100 * time.Millisecond
		}
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
	return nil
}

// watchless is a client of which nobody asks for watches.
type watchless struct{ client.Client }

func (watchless) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	return nil, errors.ErrUnsupported
}

// complete tells whether the service is there as a version, or gone.
func complete(version, owner string) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		cluster := &cluster{client: watchless{user}}
		found, err := (&manifest.Carrier{}).List(ctx, cluster, carrier.Owner{Namespace: "platform", Name: owner})
		if err != nil {
			return err
		}
		for _, f := range found {
			if f.Key.Namespace == namespace && f.Version == version {
				return nil
			}
		}
		return fmt.Errorf("version %s of owner %s is not there: %v", version, owner, found)
	}
}

func wishFor(data map[string]string) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		w := &corev1.ConfigMap{}
		w.Namespace, w.Name = namespace, wish
		if err := client.IgnoreAlreadyExists(user.Create(ctx, w)); err != nil {
			return err
		}
		w.Data = data
		return user.Update(ctx, w)
	}
}

func TestCrashAtEveryWriteConverges(t *testing.T) {
	left := func(ctx context.Context, user client.Client, namespace string) error {
		var configMaps corev1.ConfigMapList
		var secrets corev1.SecretList
		if err := errors.Join(user.List(ctx, &configMaps, client.InNamespace(namespace), client.HasLabels{carrier.OwnerLabel}),
			user.List(ctx, &secrets, client.InNamespace(namespace), client.HasLabels{carrier.OwnerLabel})); err != nil {
			return err
		}
		if n := len(configMaps.Items) + len(secrets.Items); n > 0 {
			return fmt.Errorf("%d objects are left", n)
		}
		return nil
	}
	operatortest.BreakAtEveryWrite(t, operatortest.Scenario{
		Name:  "manifests",
		Start: operate,
		Phases: []operatortest.Phase{
			{Name: "install", Do: wishFor(map[string]string{"owner": "one", "version": "1", "a.yaml": configMap("a", "1"), "b.yaml": configMap("b", "1")}),
				Until: complete("1", "one")},
			{Name: "upgrade", Do: wishFor(map[string]string{"owner": "one", "version": "2", "a.yaml": configMap("a", "2"), "c.yaml": configMap("c", "1")}),
				Until: complete("2", "one")},
			{Name: "hand over", Do: wishFor(map[string]string{"owner": "two", "version": "2", "a.yaml": configMap("a", "2"), "c.yaml": configMap("c", "1")}),
				Until: complete("2", "two")},
			{Name: "remove", Do: wishFor(map[string]string{"owner": "two"}), Until: left},
			{Name: "install again", Do: wishFor(map[string]string{"owner": "two", "version": "3", "a.yaml": configMap("a", "3")}), Until: complete("3", "two")},
		},
		Objects:   []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}},
		Normalize: normalize,
		Parallel:  2,
	})
}

// normalize drops from inventories when their services were applied, and their seals.
func normalize(u *unstructured.Unstructured) {
	if !strings.HasPrefix(u.GetName(), manifest.InventoryPrefix) {
		return
	}
	annotations := u.GetAnnotations()
	for name, text := range annotations {
		annotations[name] = applied.ReplaceAllString(text, "")
	}
	u.SetAnnotations(annotations)
	delete(u.Object, "data") // It has the namespace of the run.
}

var applied = regexp.MustCompile(`"(applied|fingerprint)":"[^"]*",`)
