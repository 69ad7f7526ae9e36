package objectresource_test

import (
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestR5ADeletionIsNotDoneByA404OfAProxy(t *testing.T) {
	k := newKit(t)
	p := k.primary("shop")
	r := k.resource(func() []client.Object { return []client.Object{k.meta("child")} },
		func(c *config) { c.Kinds = []client.Object{&corev1.ConfigMap{}} })
	for _, verb := range []string{"list", "delete"} {
		t.Run(verb, func(t *testing.T) {
			k.update(r, p)
			lying := k.faults.On(func(r operatortest.Request) bool { return r.Resource == "configmaps" && r.Verb == verb },
				operatortest.Answer(&apierrors.StatusError{ErrStatus: metav1.Status{
					Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
				}}))
			defer lying.Remove()
			err := framework.ProcessDelete(t.Context(), p, []framework.Resource{r})
			if _, there := k.configMap("child"); !there || err == nil {
				t.Errorf("the deletion ended with %v, and that the child is there is %t; want an error, and the child", err, there)
			}
		})
	}
	if err := framework.ProcessDelete(t.Context(), p, []framework.Resource{r}); err != nil {
		t.Fatal(err)
	}
	if _, there := k.configMap("child"); there {
		t.Error("the child is there once the API server answers by itself")
	}
}
