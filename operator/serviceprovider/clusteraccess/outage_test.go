package clusteraccess_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// nowhere is a server that does not answer.
func nowhere(w *world) *rest.Config {
	config := w.remote.RESTConfig()
	config.Host = "https://127.0.0.1:1"
	return config
}

// moveCluster changes where a Cluster is reached.
func (w *world) moveCluster(name string, config *rest.Config) {
	w.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name + "-admin"}}
	if err := w.user.Get(w.t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
		w.t.Fatal(err)
	}
	secret.Data[v1alpha1.KubeconfigKey] = kubeconfigOf(w.t, config)
	if err := w.user.Update(w.t.Context(), secret); err != nil {
		w.t.Fatal(err)
	}
}

func TestAClusterThatDoesNotAnswerHoldsOnlyItsOwnRequests(t *testing.T) {
	w := newWorld(t)
	w.addCluster("up", "workload")
	down, secret := newCluster(t, "down", nowhere(w), "workload")
	w.create(down, secret)
	waiting, served := newAccess("waiting", "down"), newAccess("served", "up")
	w.create(waiting, served)
	w.start()
	w.granted(served)
	w.wants(waiting, v1alpha1.PhasePending, v1alpha1.ReasonClusterUnreachable)
	if !strings.Contains(message(waiting), "Cluster down can't be reached") {
		t.Errorf("the message does not name the cluster: %s", message(waiting))
	}
	settles(w, down, "the Cluster is not ready", func(c *v1alpha1.Cluster) error {
		if !apimeta.IsStatusConditionFalse(c.Status.Conditions, v1alpha1.ConditionReady) {
			return fmt.Errorf("its conditions are %v", c.Status.Conditions)
		}
		return nil
	})
	w.moveCluster("down", w.remote.RESTConfig())
	w.granted(waiting)
	settles(w, down, "the Cluster is ready", func(c *v1alpha1.Cluster) error {
		if !apimeta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionReady) {
			return fmt.Errorf("its conditions are %v", c.Status.Conditions)
		}
		return nil
	})
}

func TestGoodCredentialsStayGrantedWhileTheClusterDoesNotAnswer(t *testing.T) {
	w := newWorld(t)
	w.addCluster("c", "workload")
	ar := newAccess("a", "c")
	w.create(ar)
	w.start()
	w.granted(ar)
	w.moveCluster("c", nowhere(w))
	w.wants(ar, v1alpha1.PhaseGranted, v1alpha1.ReasonClusterUnreachable)
	if ar.Status.SecretRef == nil {
		t.Error("the status does not name the Secret any more")
	}
	w.clock.SetTime(ar.Status.ExpirationTime.Time)
	w.look(ar)
	w.wants(ar, v1alpha1.PhasePending, v1alpha1.ReasonClusterUnreachable)
}

func TestWhatIsDeniedWhileTheClusterDoesNotAnswerIsToldToWorkThereStill(t *testing.T) {
	w := newWorld(t)
	w.addCluster("c", "workload")
	ar := newAccess("a", "c", inNamespace("team", "get"))
	w.create(ar)
	w.start()
	_, config := w.credentials(w.granted(ar))
	w.moveCluster("c", nowhere(w))
	w.wants(ar, v1alpha1.PhaseGranted, v1alpha1.ReasonClusterUnreachable)
	ar.Spec.Permissions[0].Rules[0].Resources = []string{"secrets"}
	w.update(ar)
	w.wants(ar, v1alpha1.PhaseDenied, v1alpha1.ReasonExceedsPolicy)
	if !strings.Contains(message(ar), "still works in the cluster") || !strings.Contains(message(ar), "Cluster c can't be reached") {
		t.Errorf("the message does not say that the access works still: %s", message(ar))
	}
	w.works(config)
	w.moveCluster("c", w.remote.RESTConfig())
	w.refused(config)
}

func TestADeletionWaitsForItsClusterUntilThatIsLetGo(t *testing.T) {
	w := newWorld(t)
	w.addCluster("c", "workload")
	ar := newAccess("a", "c")
	w.create(ar)
	w.start()
	secret, _ := w.credentials(w.granted(ar))
	w.moveCluster("c", nowhere(w))
	w.wants(ar, v1alpha1.PhaseGranted, v1alpha1.ReasonClusterUnreachable)
	if err := w.user.Delete(t.Context(), ar); err != nil {
		t.Fatal(err)
	}
	w.wantGone(secret) // nobody gets these credentials any more
	w.wants(ar, v1alpha1.PhasePending, v1alpha1.ReasonClusterUnreachable)
	if !strings.Contains(message(ar), v1alpha1.AbandonAnnotation) {
		t.Errorf("the message does not say how to let go: %s", message(ar))
	}

	w.patch(ar, `{"metadata":{"annotations":{"`+v1alpha1.AbandonAnnotation+`":"yes, please"}}}`) // means nothing
	w.patch(ar, `{"metadata":{"annotations":{"`+v1alpha1.AbandonAnnotation+`":"true"}}}`)
	w.wantGone(ar)
	operatortest.Eventually(t, "an event names the cluster", func() error {
		events := &corev1.EventList{}
		if err := w.user.List(t.Context(), events, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Reason == "Abandoned" && strings.Contains(e.Message, "Cluster c ") {
				return nil
			}
		}
		return errors.New("there is none")
	})
	left, err := w.remains(w.namespace)
	if err != nil || len(left) == 0 {
		t.Errorf("%d objects are left in the cluster (%v); nobody could take them away", len(left), err)
	}
	for _, o := range left {
		_ = w.admin.Delete(t.Context(), o)
	}
}

func TestARequestForNoClusterAtAllCanBeDeleted(t *testing.T) {
	w := newWorld(t)
	ar := newAccess("a", "missing")
	w.create(ar)
	w.start()
	w.wants(ar, v1alpha1.PhasePending, v1alpha1.ReasonClusterMissing)
	if err := w.user.Delete(t.Context(), ar); err != nil {
		t.Fatal(err)
	}
	w.wantGone(ar)
}

func TestADeletionFinishesWhenItsClusterIsBack(t *testing.T) {
	w := newWorld(t)
	w.addCluster("c", "workload")
	ar := newAccess("a", "c")
	w.create(ar)
	w.start()
	w.granted(ar)
	w.moveCluster("c", nowhere(w))
	w.wants(ar, v1alpha1.PhaseGranted, v1alpha1.ReasonClusterUnreachable)
	if err := w.user.Delete(t.Context(), ar); err != nil {
		t.Fatal(err)
	}
	w.wants(ar, v1alpha1.PhasePending, v1alpha1.ReasonClusterUnreachable)
	w.moveCluster("c", w.remote.RESTConfig())
	w.wantGone(ar)
	w.wantNothingLeft()
}
