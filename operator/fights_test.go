package operator_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

// contested runs an operator that makes an object for the ConfigMap "home". It returns the framework.
func contested(t *testing.T, config *rest.Config, namespace string, made client.Object) *framework.Framework {
	t.Helper()
	d, err := operator.NewDependencies(operator.DependenciesConfig{
		Name: "gardener", RESTConfig: config, Scheme: clientgoscheme.Scheme, Logger: quiet(t), Namespaces: []string{namespace},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	source, err := d.NewSource(&corev1.ConfigMap{}, operator.WithLabels(labels.SelectorFromSet(labels.Set{"bed": "yes"})))
	if err != nil {
		t.Fatal(err)
	}
	own, err := d.Own(&corev1.ConfigMap{}, made)
	if err != nil {
		t.Fatal(err)
	}
	plants, err := objectresource.New(objectresource.Config[*corev1.ConfigMap]{
		Name: "plants", Client: d.Client, Logger: d.Logger, Stores: own.Stores,
		Desired: func(context.Context, *corev1.ConfigMap) ([]client.Object, error) {
			return []client.Object{made.DeepCopyObject().(client.Object)}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	f, err := d.NewFramework(framework.Config{Name: "beds", Source: source, ResourceRouter: routerOf(t, plants), Watches: own.Watches})
	if err != nil {
		t.Fatal(err)
	}
	run(t, newOperator(t, operator.Config{Name: "gardener", Frameworks: []*framework.Framework{f}, Registry: d.Registry}))
	return f
}

// undone reverts a field again and again until there is a fight, and returns it.
func undone(t *testing.T, user client.Client, f *framework.Framework, made client.Object, patch string) framework.Fight {
	t.Helper()
	n := 0
	operatortest.Eventually(t, "there is a fight", func() error {
		if fights := f.Fights(); len(fights) == 1 {
			return nil
		}
		// Another writer that adds a label changes something each time.
		n++
		undo := strings.ReplaceAll(patch, "$n", fmt.Sprint(n))
		err := user.Patch(t.Context(), made.DeepCopyObject().(client.Object), client.RawPatch("application/strategic-merge-patch+json", []byte(undo)), client.FieldOwner("intruder"))
		time.Sleep(50 * time.Millisecond)
		return fmt.Errorf("after %d patches: %w", n, err)
	})
	return f.Fights()[0]
}

func TestAFightNamesTheFieldAndItsOtherManager(t *testing.T) {
	instance := operatortest.Start(t)
	user := operatortest.NewClient(t, instance.RESTConfig(), nil)
	meta := func(namespace string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: "oak"} }
	for name, test := range map[string]struct {
		made         func(namespace string) client.Object
		patch, field string
	}{
		"a field of a ConfigMap": {func(namespace string) client.Object {
			return &corev1.ConfigMap{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: meta(namespace), Data: map[string]string{"color": "green", "leaf.size": "big"},
			}
		}, `{"metadata":{"labels":{"n":"$n"}},"data":{"leaf.size":"small"}}`, `data["leaf.size"]`},
		"an element of a list": {func(namespace string) client.Object {
			pods := map[string]string{"app": "oak"}
			return &appsv1.Deployment{
				TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: meta(namespace),
				Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: pods}, Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: pods},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}, {Name: "log", Image: "log:1"}}},
				}},
			}
		}, `{"metadata":{"labels":{"n":"$n"}},"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:0"}]}}}}`,
			"spec.template.spec.containers[name=web].image"},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := instance.Namespace(t)
			made := test.made(namespace)
			f := contested(t, instance.RESTConfig(), namespace, made)
			home := bed(namespace, "home", nil)
			must(t, user.Create(t.Context(), home))
			key := client.ObjectKeyFromObject(made)
			operatortest.Eventually(t, "it is made", func() error { return user.Get(t.Context(), key, made.DeepCopyObject().(client.Object)) })

			other := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"other":"field"}}}`))
			must(t, user.Patch(t.Context(), made.DeepCopyObject().(client.Object), other, client.FieldOwner("bystander")))

			fight := undone(t, user, f, made, test.patch)
			if len(fight.Fields) != 1 || fight.Fields[0] != test.field || len(fight.Managers) != 1 || !strings.HasPrefix(fight.Managers[0], `"intruder" (20`) {
				t.Errorf("the fight is %s, want %s and the intruder", fight, test.field)
			}
			operatortest.Eventually(t, "an event names both", func() error {
				var list corev1.EventList
				if err := user.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
					return err
				}
				for _, e := range list.Items {
					if e.Reason == framework.ReasonChangeUndone && e.InvolvedObject.Name == "home" && e.InvolvedObject.UID == home.UID &&
						strings.Contains(e.Message, test.field) && strings.Contains(e.Message, `also written by "intruder"`) {
						return nil
					}
				}
				return fmt.Errorf("the events are %v", list.Items)
			})
		})
	}
}

// unreadable refuses to read the metadata of one object.
type unreadable struct {
	next http.RoundTripper
	read *atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (u unreadable) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/configmaps/oak") || !strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata") {
		return u.next.RoundTrip(r)
	}
	u.read.Add(1)
	answer := httptest.NewRecorder()
	answer.WriteHeader(http.StatusForbidden)
	return answer.Result(), nil
}

func TestAFightBlamesNobodyWithoutTheRightToRead(t *testing.T) {
	instance := operatortest.Start(t)
	namespace, user := instance.Namespace(t), operatortest.NewClient(t, instance.RESTConfig(), nil)
	made := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "oak"}, Data: map[string]string{"color": "green"},
	}
	var read atomic.Int64
	config := rest.CopyConfig(instance.RESTConfig())
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return unreadable{next, &read} })
	f := contested(t, config, namespace, made)
	must(t, user.Create(t.Context(), bed(namespace, "home", nil)))
	operatortest.Eventually(t, "it is made", func() error { return user.Get(t.Context(), client.ObjectKeyFromObject(made), &corev1.ConfigMap{}) })

	fight := undone(t, user, f, made, `{"metadata":{"labels":{"n":"$n"}},"data":{"color":"red"}}`)
	if len(fight.Managers) != 0 || !strings.HasSuffix(fight.String(), "what undoes it is not known") || read.Load() != 1 {
		t.Errorf("the fight is %s after %d reads, want nobody blamed after one", fight, read.Load())
	}
}
