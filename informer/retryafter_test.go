package informer_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// throttled is a client of a server that puts off the requests for ConfigMaps.
func throttled(t *testing.T, fault operatortest.Fault) (c client.WithWatch, namespace string, rule *operatortest.Rule) {
	t.Helper()
	instance, namespace := namespaceOf(t)
	faults := operatortest.NewFaults()
	config := faults.Wrap(instance.RESTConfig())
	config.Wrap(informer.RetryAfterTransport)
	c = operatortest.NewClient(t, config, nil)
	return c, namespace, faults.On(operatortest.Throttled("configmaps"), fault)
}

func TestARequestThatIsPutOffFailsAtOnceWithItsPause(t *testing.T) {
	unavailable := apierrors.NewServiceUnavailable("later")
	unavailable.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 3600}
	for name, fault := range map[string]operatortest.Fault{
		"429": operatortest.TooManyRequests(time.Hour),
		"503": operatortest.Answer(unavailable),
	} {
		t.Run(name, func(t *testing.T) {
			c, namespace, rule := throttled(t, fault)
			for what, request := range map[string]func() error{
				"get": func() error {
					return c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "x"}, &corev1.ConfigMap{})
				},
				"list":   func() error { return c.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(namespace)) },
				"create": func() error { return c.Create(t.Context(), named(namespace, "x")) },
			} {
				before := rule.Hits()
				err := request()
				if pause, asked := apierrors.SuggestsClientDelay(err); !asked || pause != 3600 {
					t.Errorf("%s: %v, with a pause of %d s", what, err, pause)
				}
				if hits := rule.Hits() - before; hits != 1 {
					t.Errorf("%s: %d requests", what, hits)
				}
			}
		})
	}
}

func TestARequestThatIsPutOffForASecondIsRepeatedOnce(t *testing.T) {
	c, namespace, rule := throttled(t, operatortest.TooManyRequests(time.Second))
	rule.Times(1)
	if err := c.Create(t.Context(), named(namespace, "x")); err != nil {
		t.Fatal(err)
	}
	rule.Times(3)
	err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "x"}, &corev1.ConfigMap{})
	if pause, _ := apierrors.SuggestsClientDelay(err); !apierrors.IsTooManyRequests(err) || pause != 1 || rule.Hits() != 3 {
		t.Errorf("error %v, pause %d, after %d requests", err, pause, rule.Hits())
	}
}

func TestASourceWhoseListIsPutOffSaysWhyItIsNotSynced(t *testing.T) {
	c, namespace, rule := throttled(t, operatortest.TooManyRequests(time.Hour))
	create(t, operatortest.NewClient(t, operatortest.Start(t).RESTConfig(), nil), named(namespace, "x"))
	source, err := informer.NewKubernetes(configMapConfig(t, c, namespace))
	if err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() { stopped <- source.Run(ctx) }()
	operatortest.Eventually(t, "the source says why", func() error {
		if status := source.Status(); status.Synced || !apierrors.IsTooManyRequests(status.LastError) {
			return fmt.Errorf("status %+v", status)
		}
		return nil
	})
	rule.Remove()
	operatortest.Eventually(t, "the source is synced", func() bool { return source.Status().Synced })
	stop()
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
}
