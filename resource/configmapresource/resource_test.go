package configmapresource_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/giantswarm/micrologger"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/configmapresource"
)

type config = configmapresource.Config[*corev1.Namespace]

func newClient(t *testing.T) (client.Client, string) {
	t.Helper()
	server := operatortest.Start(t)
	c := operatortest.NewClient(t, server.RESTConfig(), nil)
	return c, server.Namespace(t)
}

func page(namespace, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "page"}, Data: map[string]string{"index.html": text},
	}
}

func TestConfigMapsFollowTheirPrimary(t *testing.T) {
	c, namespace := newClient(t)
	var log bytes.Buffer
	logger, err := micrologger.New(micrologger.Config{IOWriter: &log})
	if err != nil {
		t.Fatal(err)
	}
	text := "hello"
	r, err := configmapresource.New(config{
		Name: "pages", Client: c, Logger: logger,
		Desired: func(_ context.Context, ns *corev1.Namespace) ([]*corev1.ConfigMap, error) {
			return []*corev1.ConfigMap{page(ns.Name, text)}, nil
		},
		Sensitive: func(cm *corev1.ConfigMap) bool { return cm.Name == "page" },
	})
	if err != nil {
		t.Fatal(err)
	}
	primary := &corev1.Namespace{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: namespace}, primary); err != nil {
		t.Fatal(err)
	}

	for _, text = range []string{"hello", "bye"} {
		if err := framework.ProcessUpdate(t.Context(), primary, []framework.Resource{r}); err != nil {
			t.Fatal(err)
		}
		got := page(namespace, "")
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(got), got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"index.html": text}, got.Data); diff != "" {
			t.Error(diff)
		}
	}
	if err := framework.ProcessDelete(t.Context(), primary, []framework.Resource{r}); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "page"}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want the config map to be gone", err)
	}
	if strings.Contains(log.String(), "bye") || !strings.Contains(log.String(), "ConfigMap "+namespace+"/page") {
		t.Errorf("the log shows a sensitive value, or not what was written:\n%s", log.String())
	}
}

func TestAnErrorOfDesiredIsTheErrorOfItsStep(t *testing.T) {
	c, namespace := newClient(t)
	logger, err := micrologger.New(micrologger.Config{IOWriter: &bytes.Buffer{}})
	if err != nil {
		t.Fatal(err)
	}
	cause := errors.New("no text")
	r, err := configmapresource.New(config{
		Name: "pages", Client: c, Logger: logger,
		Desired: func(context.Context, *corev1.Namespace) ([]*corev1.ConfigMap, error) { return nil, cause },
	})
	if err != nil {
		t.Fatal(err)
	}
	primary := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	err = framework.ProcessUpdate(t.Context(), primary, []framework.Resource{r})
	var step *framework.StepError
	if !errors.Is(err, cause) || !errors.As(err, &step) || step.Step != framework.StepGetDesiredState {
		t.Errorf("got %v, want the error with its step", err)
	}
}

func TestNewNamesEveryFaultyField(t *testing.T) {
	_, err := configmapresource.New(config{})
	want := "invalid config: objectresource.Config: Name must not be empty; Logger must not be nil; " +
		"Desired must not be nil; Client must not be nil"
	if !framework.IsInvalidConfig(err) || err.Error() != want {
		t.Error(cmp.Diff(want, err.Error()))
	}
}
