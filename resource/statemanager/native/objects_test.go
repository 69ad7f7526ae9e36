package native_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

const deploymentText = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:%s"}]}
`

// roll plays the controller of a Deployment: it says that the newest generation is there.
func (w *world) roll() {
	w.t.Helper()
	operatortest.Eventually(w.t, "the Deployment rolls", func() error {
		d := &appsv1.Deployment{}
		if err := w.east.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "web"}, d); err != nil {
			return err
		}
		d.Status = appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
			Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
			},
		}
		return w.east.Status().Update(w.t.Context(), d)
	})
}

// TestHealthIsThatOfWhatWasWritten holds that a watch which has not heard of a write shows nothing as healthy: the Deployment of
// before was.
func TestHealthIsThatOfWhatWasWritten(t *testing.T) {
	w := newPlatform(t)
	w.useEast()
	for _, version := range []string{"1", "2"} {
		w.manifests("web-"+version, fmt.Sprintf(deploymentText, version))
	}
	w.set("a", "east", w.service("web", "web-1"))
	w.mustStep("a")
	w.settle("a", "web Provisioning")
	says(t, w.condition("a", "web", native.ConditionHealthy).Message, "Deployment", "web")
	w.roll()
	w.settle("a", "web Deployed")
	for version := 2; version < 12; version++ {
		w.change("a", func(s *v1alpha1.ServiceSet) { s.Spec.Services[0].Template = fmt.Sprintf("web-%d", 1+(version+1)%2) })
		w.mustStep("a")
		for range 3 {
			w.mustStep("a")
			if got := states(w.get("a")); got != "web Provisioning" {
				t.Fatalf("a Deployment that has not rolled is: %s", got)
			}
		}
		w.roll()
		w.settle("a", "web Deployed")
	}
}

// TestWhatRunsCostsFewRequests counts what a reconciliation asks of a cluster where nothing changes.
func TestWhatRunsCostsFewRequests(t *testing.T) {
	w := newPlatform(t)
	w.useEast()
	w.charts(map[string][]byte{"app-1.0.0.tgz": chartOf(t, "app", "1.0.0", nil)})
	w.manifests("files", configMapText("one", "1")+configMapText("two", "2")+configMapText("three", "3"))
	w.set("a", "east", w.service("app", "app-1.0.0"), w.service("files", "files"))
	w.settle("a", "app Deployed, files Deployed")
	var sent []string
	operatortest.Eventually(t, "a reconciliation costs one request for each service", func() error {
		w.requests.drain()
		w.mustStep("a")
		if sent = w.requests.drain(); len(sent) > 2 {
			return fmt.Errorf("it costs %q", sent)
		}
		return nil
	})
	t.Logf("requests: %q", sent)
}

// TestChangesOnTheClusterAreTold holds that drift is watched and not polled: a notice names the set, and nobody else.
func TestChangesOnTheClusterAreTold(t *testing.T) {
	w := newPlatform(t)
	w.useEast()
	w.manifests("files", configMapText("one", "1"))
	w.set("a", "east", w.service("files", "files"))
	w.change("a", func(s *v1alpha1.ServiceSet) {
		s.Spec.Provider.Config = syncMode(v1alpha1.SyncModeContinuousWithDriftDetection)
	})
	w.settle("a", "files Deployed")
	w.quiet("a")
	told := make(chan target.Notice, 100)
	stop := w.clusters.Notices().Subscribe(func(e informer.Event) {
		if n, ok := e.Object.(*target.Notice); ok && n.Occasion == target.ObjectChanged && n.Kind.Kind == "ConfigMap" && n.User.Name == "a" {
			told <- *n
		}
	})
	defer stop()
	// Its watch may begin only now.
	operatortest.Eventually(t, "the change is told", func() error {
		one := w.onEast("one")
		one.Data["text"] += "x"
		if err := w.east.Update(t.Context(), one); err != nil {
			return err
		}
		select {
		case <-told:
			return nil
		default:
			return fmt.Errorf("nobody was told")
		}
	})
	operatortest.Eventually(t, "the drift is put right", func() error {
		_, err := w.step("a")
		if got := w.onEast("one").Data["text"]; got != "1" {
			return errors.Join(fmt.Errorf("the text is %q", got), err)
		}
		return err
	})
	w.settle("a", "files Deployed")
}

func TestOwnersAreNamedByTheirLabel(t *testing.T) {
	sets := informer.NewPush("sets")
	set := &v1alpha1.ServiceSet{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "a", ResourceVersion: "1"}}
	if err := sets.Update(set); err != nil {
		t.Fatal(err)
	}
	owners := native.Owners(sets)
	ours := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{carrier.OwnerLabel: carrier.Owner{Namespace: "team", Name: "a"}.ID()}}}
	if got := owners(target.Key{}, ours); !slices.Equal(got, []target.Key{{Namespace: "team", Name: "a"}}) {
		t.Errorf("owners: %v", got)
	}
	if got := owners(target.Key{}, &corev1.ConfigMap{}); got != nil {
		t.Errorf("owners of somebody's object: %v", got)
	}
	if err := sets.Delete(set); err != nil {
		t.Fatal(err)
	}
	if got := owners(target.Key{}, ours); got != nil {
		t.Errorf("owners of an object whose set is gone: %v", got)
	}
}

// TestEverythingGoes deletes sets of charts and manifests, and looks for what is left by its label.
func TestEverythingGoes(t *testing.T) {
	w := newPlatform(t)
	w.useEast()
	w.charts(map[string][]byte{"app-1.0.0.tgz": chartOf(t, "app", "1.0.0", nil)})
	w.manifests("files", configMapText("one", "1"))
	w.set("a", "east", w.service("app", "app-1.0.0", "files"), w.service("files", "files"))
	w.settle("a", "app Deployed, files Deployed")
	byUs := func(labels map[string]string) bool {
		return carrier.SetOf(labels[carrier.OwnerLabel]) == carrier.SetID(w.namespace, "a")
	}
	left := func() (names []string) {
		for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, &corev1.SecretList{}} {
			if err := w.east.List(t.Context(), list); err != nil {
				t.Fatal(err)
			}
			switch list := list.(type) {
			case *corev1.ConfigMapList:
				for _, o := range list.Items {
					if byUs(o.Labels) {
						names = append(names, o.Name)
					}
				}
			case *corev1.SecretList:
				for _, o := range list.Items {
					if byUs(o.Labels) {
						names = append(names, o.Name)
					}
				}
			}
		}
		return names
	}
	if len(left()) < 4 {
		t.Fatalf("on the cluster: %v", left())
	}
	if err := w.client.Delete(t.Context(), w.get("a")); err != nil {
		t.Fatal(err)
	}
	w.restart()
	w.settle("a", "")
	if got := left(); len(got) > 0 {
		t.Errorf("left on the cluster: %v", got)
	}
}
