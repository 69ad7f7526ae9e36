package commandtest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/command/commandtest"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

// library gives each book a page, and a title that tells whether the page is there: by a resource that stands before the one that makes it.
func library(ownWrites bool) command.Config {
	return command.Config{
		Name: "library", Version: "v1",
		New: func(_ context.Context, d *operator.Dependencies) ([]*framework.Framework, error) {
			books, err := d.NewSource(&corev1.ConfigMap{}, operator.WithLabels(labels.SelectorFromSet(labels.Set{"book": "yes"})))
			if err != nil {
				return nil, err
			}
			owned, err := d.NewOwnedSource(&corev1.ConfigMap{})
			if err != nil {
				return nil, err
			}
			objects := func(name string, data func(book *corev1.ConfigMap) (map[string]string, error)) (framework.Resource, error) {
				return objectresource.New(objectresource.Config[*corev1.ConfigMap]{
					Name: name, Client: d.Client, Logger: d.Logger, Stores: []objectresource.Store{owned},
					Desired: func(_ context.Context, book *corev1.ConfigMap) ([]client.Object, error) {
						made, err := data(book)
						return []client.Object{&corev1.ConfigMap{
							ObjectMeta: metav1.ObjectMeta{Namespace: book.Namespace, Name: book.Name + "-" + name}, Data: made,
						}}, err
					},
				})
			}
			title, err := objects("title", func(book *corev1.ConfigMap) (map[string]string, error) {
				_, exists, err := owned.Get(informer.Key{Namespace: book.Namespace, Name: book.Name + "-page"})
				return map[string]string{"printed": fmt.Sprint(exists)}, err
			})
			if err != nil {
				return nil, err
			}
			page, err := objects("page", func(*corev1.ConfigMap) (map[string]string, error) { return map[string]string{"text": "Once"}, nil })
			if err != nil {
				return nil, err
			}
			f, err := d.NewFramework(framework.Config{
				Name: "books", Source: books, DisableFinalizer: true, Resources: []framework.Resource{title, page},
				Watches: []framework.Watch{{
					Source: owned, Map: objectresource.OwnerMap(corev1.SchemeGroupVersion.WithKind("ConfigMap").GroupKind()), OwnWrites: ownWrites,
				}},
			})
			return []*framework.Framework{f}, err
		},
	}
}

func lifeOfABook(ownWrites bool) operatortest.Scenario {
	book := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "tale", Labels: map[string]string{"book": "yes"}}}
	return operatortest.Scenario{
		Name: "library", Start: commandtest.Start(library(ownWrites)), Objects: []client.Object{&corev1.ConfigMap{}},
		Normalize: objectresource.Normalize,
		Phases: []operatortest.Phase{{
			Name: "create", Do: operatortest.Create(book),
			Until: func(ctx context.Context, user client.Client, namespace string) error {
				return user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "tale-page"}, &corev1.ConfigMap{})
			},
		}},
	}
}

func TestR11QuietFindsAResourceThatReliesOnBeingWokenByOwnWrites(t *testing.T) {
	operatortest.Quiet(t, lifeOfABook(true))
	told := &kept{TB: t}
	operatortest.Quiet(told, lifeOfABook(false))
	for _, part := range []string{"the operator wrote what was left undone before", "PATCH configmaps", "tale-title", "framework.Watch.OwnWrites"} {
		if !strings.Contains(told.errors, part) {
			t.Errorf("want %q in: %s", part, told.errors)
		}
	}
}

// kept is a test that keeps its errors.
type kept struct {
	testing.TB

	errors string
}

func (k *kept) Errorf(format string, args ...any) { k.errors += fmt.Sprintf(format, args...) }
