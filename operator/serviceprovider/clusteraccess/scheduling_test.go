package clusteraccess_test

import (
	"fmt"
	"strings"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// newRequest returns a ClusterRequest.
func newRequest(name, purpose string, labels map[string]string) *v1alpha1.ClusterRequest {
	r := &v1alpha1.ClusterRequest{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ClusterRequestSpec{Purpose: purpose}}
	if labels != nil {
		r.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	}
	return r
}

// addPlace lists the remote cluster with labels and a capacity; negative is no limit.
func (w *world) addPlace(name, purpose string, capacity int32, labels map[string]string) *v1alpha1.Cluster {
	w.t.Helper()
	cluster, secret := newCluster(w.t, name, w.remote.RESTConfig(), purpose)
	cluster.Labels = labels
	if capacity >= 0 {
		cluster.Spec.Capacity = &capacity
	}
	w.create(secret, cluster)
	return cluster
}

// placed waits for what a ClusterRequest says: a reason, and the name of its Cluster.
func (w *world) placed(r *v1alpha1.ClusterRequest, phase v1alpha1.Phase, reason, cluster string) {
	w.t.Helper()
	settles(w, r, fmt.Sprintf("%s is %s, %s, with cluster %q", r.Name, phase, reason, cluster), func(r *v1alpha1.ClusterRequest) error {
		c := apimeta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionGranted)
		has := ""
		if r.Status.ClusterRef != nil {
			has = r.Status.ClusterRef.Name
		}
		if r.Status.Phase != phase || c == nil || c.Reason != reason || has != cluster {
			return fmt.Errorf("it is %+v", r.Status)
		}
		return nil
	})
}

func requestMessage(r *v1alpha1.ClusterRequest) string {
	if c := apimeta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionGranted); c != nil {
		return c.Message
	}
	return ""
}

func TestARequestGetsAClusterByPurposeAndLabels(t *testing.T) {
	w := newWorld(t)
	w.addPlace("mcp-a", "mcp", -1, map[string]string{"tenant": "a"})
	w.addPlace("mcp-b", "mcp", -1, map[string]string{"tenant": "b"})
	w.addPlace("workload", "workload", -1, map[string]string{"tenant": "b"})
	byLabel, byPurpose := newRequest("by-label", "mcp", map[string]string{"tenant": "b"}), newRequest("by-purpose", "workload", nil)
	none, invalid := newRequest("none", "mcp", map[string]string{"tenant": "c"}), newRequest("invalid", "mcp", nil)
	invalid.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
	w.create(byLabel, byPurpose, none, invalid)
	w.start()
	w.placed(byLabel, v1alpha1.PhaseGranted, v1alpha1.ReasonGranted, "mcp-b")
	w.placed(byPurpose, v1alpha1.PhaseGranted, v1alpha1.ReasonGranted, "workload")
	w.placed(none, v1alpha1.PhasePending, v1alpha1.ReasonNoCluster, "")
	if want := "for the purpose mcp with the labels tenant=c"; !strings.Contains(requestMessage(none), want) {
		t.Errorf("the message does not say %q: %s", want, requestMessage(none))
	}
	w.placed(invalid, v1alpha1.PhaseDenied, v1alpha1.ReasonSelectorInvalid, "")

	w.addPlace("mcp-c", "mcp", -1, map[string]string{"tenant": "c"})
	w.placed(none, v1alpha1.PhaseGranted, v1alpha1.ReasonGranted, "mcp-c")
}

func TestNoClusterGetsMoreRequestsThanItTakes(t *testing.T) {
	w := newWorld(t)
	small, large := w.addPlace("small", "workload", 2, nil), w.addPlace("large", "workload", 3, nil)
	var all []*v1alpha1.ClusterRequest
	for i := range 8 {
		r := newRequest(fmt.Sprintf("r%d", i), "workload", nil)
		all = append(all, r)
		w.create(r)
	}
	w.start()
	count := func() (granted map[string]int, waiting []*v1alpha1.ClusterRequest, err error) {
		granted = map[string]int{}
		for _, r := range all {
			if err := w.user.Get(t.Context(), client.ObjectKeyFromObject(r), r); err != nil {
				return nil, nil, err
			}
			switch r.Status.Phase {
			case v1alpha1.PhaseGranted:
				granted[r.Status.ClusterRef.Name]++
			case v1alpha1.PhasePending:
				waiting = append(waiting, r)
			}
		}
		return granted, waiting, nil
	}
	var waiting []*v1alpha1.ClusterRequest
	operatortest.Eventually(t, "both clusters are full, and three requests wait", func() error {
		granted, w, err := count()
		waiting = w
		if err == nil && (granted["small"] != 2 || granted["large"] != 3 || len(waiting) != 3) {
			err = fmt.Errorf("granted are %v, %d wait", granted, len(waiting))
		}
		return err
	})
	w.placed(waiting[0], v1alpha1.PhasePending, v1alpha1.ReasonNoRoom, "")
	if want := "large has 3 of 3 requests, small has 2 of 2 requests"; !strings.Contains(requestMessage(waiting[0]), want) {
		t.Errorf("the message does not say %q: %s", want, requestMessage(waiting[0]))
	}
	for cluster, want := range map[*v1alpha1.Cluster]int32{small: 2, large: 3} {
		settles(w, cluster, "the Cluster counts its requests", func(c *v1alpha1.Cluster) error {
			if c.Status.Requests != want {
				return fmt.Errorf("it has %d, want %d", c.Status.Requests, want)
			}
			return nil
		})
	}
	for _, r := range all {
		if r.Status.ClusterRef != nil && r.Status.ClusterRef.Name == "small" {
			if err := w.user.Delete(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			w.wantGone(r)
			all = all[:0:0]
			break
		}
	}
	operatortest.Eventually(t, "one that waited has the room", func() error {
		granted := 0
		for _, r := range waiting {
			if err := w.user.Get(t.Context(), client.ObjectKeyFromObject(r), r); err != nil {
				return err
			}
			if r.Status.ClusterRef != nil && r.Status.ClusterRef.Name == "small" {
				granted++
			}
		}
		if granted != 1 {
			return fmt.Errorf("%d have it", granted)
		}
		return nil
	})
}

func TestWhatIsUsedStaysUntilItIsNot(t *testing.T) {
	w := newWorld(t)
	cluster := w.addPlace("c", "workload", -1, nil)
	request := newRequest("r", "workload", nil)
	ar := newAccess("a", "")
	ar.Spec.ClusterRef, ar.Spec.RequestRef = nil, &v1alpha1.LocalObjectReference{Name: "r"}
	w.create(ar)
	w.start()
	w.wants(ar, v1alpha1.PhasePending, v1alpha1.ReasonRequestMissing)
	w.create(request)
	w.granted(ar)
	w.placed(request, v1alpha1.PhaseGranted, v1alpha1.ReasonGranted, "c")
	for _, o := range []client.Object{cluster, request} {
		settles(w, o, "it is held", func(o client.Object) error {
			if len(o.GetFinalizers()) == 0 {
				return fmt.Errorf("it has no finalizer")
			}
			return w.user.Delete(t.Context(), o)
		})
	}
	w.placed(request, v1alpha1.PhaseGranted, v1alpha1.ReasonInUse, "c")
	if !strings.Contains(requestMessage(request), "a") {
		t.Errorf("the message does not name the AccessRequest: %s", requestMessage(request))
	}
	// Nobody is to use a Cluster that goes: the access is taken away before.
	w.wants(ar, v1alpha1.PhaseDenied, v1alpha1.ReasonClusterDeleting)
	if err := w.user.Delete(t.Context(), ar); err != nil {
		t.Fatal(err)
	}
	w.wantGone(ar)
	w.wantGone(request)
	w.wantGone(cluster)
	w.wantNothingLeft()
}

func TestADeniedClusterRequestDeniesItsAccess(t *testing.T) {
	w := newWorld(t)
	request := newRequest("r", "workload", nil)
	request.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
	ar := newAccess("a", "")
	ar.Spec.ClusterRef, ar.Spec.RequestRef = nil, &v1alpha1.LocalObjectReference{Name: "r"}
	w.create(ar, request)
	w.start()
	w.wants(ar, v1alpha1.PhaseDenied, v1alpha1.ReasonRequestDenied)
}

func TestAccessByAClusterRequestIsGrantedWhenItsClusterIsListedLater(t *testing.T) {
	w := newWorld(t)
	request := newRequest("r", "workload", nil)
	ar := newAccess("a", "")
	ar.Spec.ClusterRef, ar.Spec.RequestRef = nil, &v1alpha1.LocalObjectReference{Name: "r"}
	w.create(ar, request)
	request.Status.ClusterRef = &v1alpha1.LocalObjectReference{Name: "c"}
	if err := w.user.Status().Update(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.wants(ar, v1alpha1.PhasePending, v1alpha1.ReasonClusterMissing)
	w.addCluster("c", "workload")
	w.granted(ar)
}

func TestAClusterThatDoesNotAnswerIsNotGivenAway(t *testing.T) {
	w := newWorld(t)
	down, secret := newCluster(t, "a-down", nowhere(w), "workload")
	w.create(down, secret)
	w.start()
	settles(w, down, "the Cluster is not ready", func(c *v1alpha1.Cluster) error {
		if !apimeta.IsStatusConditionFalse(c.Status.Conditions, v1alpha1.ConditionReady) {
			return fmt.Errorf("its conditions are %v", c.Status.Conditions)
		}
		return nil
	})
	w.addPlace("b-up", "workload", -1, nil)
	request := newRequest("r", "workload", nil)
	w.create(request)
	w.placed(request, v1alpha1.PhaseGranted, v1alpha1.ReasonGranted, "b-up")
}

func TestAPlanOfAccessIssuesNothingAndShowsNoSecret(t *testing.T) {
	w := newWorld(t)
	w.addCluster("c", "workload")
	ar := newAccess("a", "c")
	w.create(ar)
	stop := w.start()
	secret, config := w.credentials(w.granted(ar))
	stop()

	w.clock.SetTime(ar.Status.RenewalTime.Time)
	text := w.plan(ar)
	if want := "renew the credentials before they run out"; !strings.Contains(text, want) {
		t.Errorf("the plan does not say %q:\n%s", want, text)
	}
	if now, _ := w.credentials(ar); now.ResourceVersion != secret.ResourceVersion {
		t.Error("planning has changed the Secret")
	}
	for what, where := range map[string]string{"plan": text, "log": w.log.String()} {
		if strings.Contains(where, config.BearerToken) {
			t.Errorf("the token is in the %s", what)
		}
	}
}

func TestGranterAndSchedulerRunInOneOperator(t *testing.T) {
	w := newWorld(t)
	deps, frameworks, err := w.open(w.kube.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer deps.Close()
	_, err = operator.New(operator.Config{
		Name: deps.Name, Logger: deps.Logger, RESTConfig: deps.RESTConfig, Registry: deps.Registry, Frameworks: frameworks,
	})
	if err != nil {
		t.Error(err)
	}
}

func TestGranterAndSchedulerShareTheirWatchesInOneOperator(t *testing.T) {
	w := newWorld(t)
	deps, frameworks, err := w.open(w.kube.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer deps.Close()
	watches, users := map[string]map[*informer.Kubernetes]bool{}, map[string]int{}
	for _, f := range frameworks {
		for _, s := range f.Sources() {
			if k, ok := s.(*informer.Kubernetes); ok {
				kind := k.GroupVersionKind().Kind
				if watches[kind] == nil {
					watches[kind] = map[*informer.Kubernetes]bool{}
				}
				watches[kind][k] = true
				users[kind]++
			}
		}
	}
	for _, kind := range []string{v1alpha1.AccessRequestKind, "ClusterRequest", "Cluster"} {
		if users[kind] < 2 || len(watches[kind]) != 1 {
			t.Errorf("%d frameworks have %d watches of each %s, want one for several", users[kind], len(watches[kind]), kind)
		}
	}
}
