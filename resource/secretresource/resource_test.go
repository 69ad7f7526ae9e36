package secretresource_test

import (
	"bytes"
	"context"
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
	"github.com/operatorkit/operatorkit/resource/secretresource"
)

type config = secretresource.Config[*corev1.Namespace]

func TestSecretsFollowTheirPrimaryAndAreWrittenOnceAChange(t *testing.T) {
	server := operatortest.Start(t)
	namespace := server.Namespace(t)
	faults := operatortest.NewFaults()
	c := operatortest.NewClient(t, faults.Wrap(server.RESTConfig()), nil)
	var log bytes.Buffer
	logger, err := micrologger.New(micrologger.Config{IOWriter: &log})
	if err != nil {
		t.Fatal(err)
	}
	token := ""
	r, err := secretresource.New(config{
		Name: "tokens", Client: c, Logger: logger,
		Desired: func(_ context.Context, ns *corev1.Namespace) ([]*corev1.Secret, error) {
			return []*corev1.Secret{{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "token"},
				StringData: map[string]string{"token": token},
			}}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	primary := &corev1.Namespace{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: namespace}, primary); err != nil {
		t.Fatal(err)
	}

	for i, step := range []struct {
		token  string
		writes int
	}{{"hunter2", 1}, {"hunter2", 1}, {"hunter3", 2}, {"hunter3", 2}} {
		token = step.token
		if err := framework.ProcessUpdate(t.Context(), primary, []framework.Resource{r}); err != nil {
			t.Fatal(err)
		}
		got := &corev1.Secret{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "token"}, got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string][]byte{"token": []byte(step.token)}, got.Data); diff != "" {
			t.Errorf("step %d: %s", i, diff)
		}
		if n := faults.Count(); n != step.writes {
			t.Errorf("step %d: %d writes so far, want %d", i, n, step.writes)
		}
	}
	if err := framework.ProcessDelete(t.Context(), primary, []framework.Resource{r}); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "token"}, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want the Secret to be gone", err)
	}
	if strings.Contains(log.String(), "hunter") || !strings.Contains(log.String(), "Secret "+namespace+"/token") {
		t.Errorf("the log shows a value, or not what was written:\n%s", log.String())
	}
}

func TestNewNamesEveryFaultyField(t *testing.T) {
	_, err := secretresource.New(config{})
	want := "invalid config: objectresource.Config: Name must not be empty; Logger must not be nil; " +
		"Desired must not be nil; Client must not be nil"
	if !framework.IsInvalidConfig(err) || err.Error() != want {
		t.Error(cmp.Diff(want, err.Error()))
	}
}
