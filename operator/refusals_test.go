package operator_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestR19ARequestThatIsRefusedIsLoggedWithTheRuleThatIsLacking(t *testing.T) {
	kube := operatortest.Start(t)
	config, err := kube.User("nobody-in-particular")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	logger, err := micrologger.New(micrologger.Config{IOWriter: &log})
	if err != nil {
		t.Fatal(err)
	}
	deps, err := operator.NewDependencies(operator.DependenciesConfig{Name: "nosy", RESTConfig: config, Scheme: clientgoscheme.Scheme, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	defer deps.Close()
	// The one asks for Protocol Buffers, the other for JSON.
	untyped := &unstructured.UnstructuredList{}
	untyped.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, &corev1.ConfigMapList{}, untyped, &corev1.SecretList{}} {
		err := deps.Client.List(t.Context(), list, client.InNamespace("default"))
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "nobody-in-particular") {
			t.Errorf("%T: got %v, want that it is forbidden, with the answer whole", list, err)
		}
	}
	for _, resource := range []string{"configmaps", "secrets"} {
		rule := `with the rule {apiGroups: [\"\"], resources: [\"` + resource + `\"], verbs: [\"list\"]}`
		if n := strings.Count(log.String(), rule); n != 1 {
			t.Errorf("%q is logged %d times, want once:\n%s", rule, n, &log)
		}
	}
}
