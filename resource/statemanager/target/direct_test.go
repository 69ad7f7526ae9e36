package target_test

import (
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

func TestADirectConfigGoesOnWithAnotherAddressAndOtherCredentials(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connected(w.deploy("prod", administrator(t, w.kube, "first")))
	config := c.DirectConfig()
	if config.Host != w.kube.RESTConfig().Host {
		t.Errorf("Host = %q, want %q", config.Host, w.kube.RESTConfig().Host)
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	whoAmI := func() string {
		review, err := clientset.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil {
			return err.Error()
		}
		return review.Status.UserInfo.Username
	}
	if got := whoAmI(); got != "first" {
		t.Fatalf("the user is %q", got)
	}
	if w.counts.of(c.Key(), "selfsubjectreviews") == 0 {
		t.Error("the request went another way than those of Client")
	}

	elsewhere, err := w.kube.User("second", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	elsewhere.Host = strings.Replace(elsewhere.Host, "127.0.0.1", "localhost", 1)
	w.rotate("prod", kubeconfigOf(t, elsewhere))
	operatortest.Eventually(t, "the same client is the second user", func() bool { return whoAmI() == "second" })
	if now := c.DirectConfig().Host; now != elsewhere.Host {
		t.Errorf("Host = %q, want %q", now, elsewhere.Host)
	}
}

func TestADirectConfigSendsCredentialsToNobodyElse(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connected(w.deploy("prod", w.account("robot")))
	httpClient, err := rest.HTTPClientFor(c.DirectConfig())
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://127.0.0.1:1/api", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := httpClient.Do(request)
	if err == nil {
		_ = response.Body.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "requests to other servers") {
		t.Errorf("err = %v", err)
	}
}

func TestADirectConfigOfAClusterWithoutAKubeconfigSaysSo(t *testing.T) {
	w := newWorld(t, nil)
	c := w.acquire(w.key("absent"), user)
	clientset, err := kubernetes.NewForConfig(c.DirectConfig())
	if err != nil {
		t.Fatal(err)
	}
	_, err = clientset.Discovery().ServerVersion()
	if got := unreachable(t, err).State; got != target.ClusterMissing {
		t.Errorf("the state is %s, want %s", got, target.ClusterMissing)
	}
}
