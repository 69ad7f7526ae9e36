package machines_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/framework"
	machinesv1alpha1 "github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/statemanagers/machines"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native"
)

// beside makes sets know of each other, as sets of one cluster.
func beside(sets ...*statemanager.Set) {
	for _, set := range sets {
		set.Others = nil
		for _, other := range sets {
			if other != set {
				set.Others = append(set.Others, other.ServiceSet)
			}
		}
	}
}

func TestANameThatSomebodyElseHasIsNotTaken(t *testing.T) {
	w := newWorld(t)
	w.create(&machinesv1alpha1.MachineService{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: machinesv1alpha1.MachineServiceSpec{}})
	w.templates(w.set, "web", "zoo")
	list(w.set, "web=web")
	list(w.set, "zoo=zoo")
	conflict := "somebody else manages the object: MachineService " + w.namespace + "/"
	w.want(w.set, "what a person made", "web Failed web: "+conflict+"web was made by somebody else: delete it if nobody needs it, "+
		"or give the service another name; zoo Provisioning zoo")
	if got := w.service("web"); got.Spec.Container.Image != "" || len(got.Annotations) > 0 {
		t.Errorf("it was changed: %+v", got)
	}

	// A service of another cluster in the same namespace.
	other := w.newSet("other")
	other.ServiceSet.Spec.Cluster = "other"
	w.templates(other, "zoo")
	list(other, "zoo=zoo")
	w.want(other, "what another cluster has", "zoo Failed zoo: "+conflict+"zoo is for service apps/zoo of ServiceSet "+w.namespace+"/prod, and "+
		"on machines a service is known by its name alone: give one of the two another name; if that set is gone, delete the MachineService")

	// Two services of a set, and one of another set of the cluster.
	twin := list(w.set, "twin=zoo")
	twin.Name, twin.Namespace = "zoo", "aaa"
	beside := w.newSet("beside")
	beside.Others = []*v1alpha1.ServiceSet{w.set.ServiceSet}
	w.templates(beside, "zoo")
	list(beside, "zoo=zoo").Namespace = "bbb"
	mend := ", and on machines a service is known by its name alone: give one of the two another name"
	work := w.settle(w.set)
	if got, want := states(work), "zoo Failed zoo: "+conflict+"zoo is for service apps/zoo"+mend; !strings.HasPrefix(got, want) {
		t.Errorf("the states are %s, want %s", got, want)
	}
	w.want(beside, "what another set has", "zoo Failed zoo: "+conflict+"zoo is for service apps/zoo of ServiceSet "+w.namespace+"/prod"+mend)

	// The one that is there goes, and the other one comes.
	drop(w.set, "web")
	w.set.ServiceSet.Spec.Services = w.set.ServiceSet.Spec.Services[1:]
	w.set.ServiceSet.Spec.Removing = append(w.set.ServiceSet.Spec.Removing, v1alpha1.ServiceRemoval{Name: "zoo", Namespace: "apps"})
	work = w.settle(w.set)
	if got := states(work); got != "zoo Provisioning zoo" || work.Services[0].Namespace != "aaa" {
		t.Errorf("the states are %s", got)
	}
}

func TestAConflictEndsTheWorkIfThatIsAskedFor(t *testing.T) {
	w := newWorld(t)
	w.create(&machinesv1alpha1.MachineService{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: machinesv1alpha1.MachineServiceSpec{}})
	w.templates(w.set, "a", "b", "c")
	w.set.Config.StopOnConflict = true
	for _, name := range []string{"a", "b", "c"} {
		list(w.set, name+"="+name)
	}
	work := w.settle(w.set)
	if got := states(work); !strings.HasPrefix(got, "a Provisioning a; b Failed b: ") || !strings.HasSuffix(got, "; c Pending c") || w.service("c") != nil {
		t.Errorf("the states are %s", got)
	}
	if err := w.user.Delete(t.Context(), w.service("b")); err != nil {
		t.Fatal(err)
	}
	w.want(w.set, "without the conflict", "a Provisioning a; b Provisioning b; c Provisioning c")
}

func TestServicesChangeHandsWithoutBeingDeleted(t *testing.T) {
	w := newWorld(t)
	heir := w.newSet("heir")
	beside(w.set, heir)
	for _, set := range []*statemanager.Set{w.set, heir} {
		w.templates(set, "web", "db")
		list(set, "web=web")
	}
	w.set.ServiceSet.CreationTimestamp = metav1.Now()
	heir.ServiceSet.CreationTimestamp = metav1.NewTime(w.set.ServiceSet.CreationTimestamp.Add(1e9))

	// Both list it: the older one has it, the other one only says how it is.
	work := w.want(heir, "before it is there", "web Pending web")
	if got := condition(work, native.ConditionWaiting); got != "True OtherServiceSet: is left to ServiceSet prod, which lists it too" {
		t.Errorf("the condition Waiting is %q", got)
	}
	w.settle(w.set)
	w.works("web")
	w.want(w.set, "the one that has it", "web Deployed web")
	w.want(heir, "the one that has not", "web Deployed web")
	uid := w.service("web").UID

	drop(w.set, "web")
	work = w.want(w.set, "before the heir has it", "web Deployed web")
	if got := condition(work, native.ConditionWaiting); !strings.HasPrefix(got, "True OtherServiceSet: is handed over to ServiceSet heir") {
		t.Errorf("the condition Waiting is %q", got)
	}
	w.want(heir, "when it has taken it", "web Deployed web")
	if work = w.want(w.set, "when the heir has it", ""); len(work.Notes) != 0 {
		t.Logf("notes: %q", work.Notes)
	}
	service := w.service("web")
	if service.UID != uid || service.Annotations[machines.SetAnnotation] != w.namespace+"/heir" || service.DeletionTimestamp != nil {
		t.Errorf("it is %+v", service.ObjectMeta)
	}

	// Of an heir that wants it gone, or whose services go elsewhere, there is none.
	third := w.newSet("third")
	w.templates(third, "web")
	list(third, "web=web").HelmAction = v1alpha1.HelmActionUninstall
	beside(w.set, heir, third)
	w.want(third, "while somebody has it", "web Deleted web")
	drop(heir, "web")
	w.want(heir, "with an heir that does not want it", "")
	if w.service("web") != nil {
		t.Error("it is still there")
	}
}

func TestDriftIsPutRightOrTold(t *testing.T) {
	w := newWorld(t)
	w.templates(w.set, "web", "next")
	list(w.set, "web=web")
	w.settle(w.set)
	w.works("web")
	scale := func() {
		w.change("web", func(s *machinesv1alpha1.MachineService) {
			s.Spec.Replicas = new(int32(7))
			s.Spec.Container.User = "somebody"
		})
		w.works("web")
	}
	replicas := func(want int32) {
		t.Helper()
		if got := *w.service("web").Spec.Replicas; got != want {
			t.Errorf("it has %d replicas, want %d", got, want)
		}
	}
	for _, mode := range []v1alpha1.SyncMode{v1alpha1.SyncModeContinuous, v1alpha1.SyncModeOneTime, v1alpha1.SyncModeDryRun} {
		scale()
		w.set.Config.SyncMode = mode
		work := w.want(w.set, string(mode), "web Deployed web")
		if got := condition(work, native.ConditionDrifted); !strings.HasSuffix(got, "web has another spec.replicas") {
			t.Errorf("%s: the condition Drifted is %q", mode, got)
		}
		replicas(7)
	}
	w.set.Config.SyncMode = v1alpha1.SyncModeContinuousWithDriftDetection
	w.settle(w.set)
	replicas(1)
	if got := w.service("web").Spec.Container.User; got != "somebody" {
		t.Errorf("what the template does not say is %q", got)
	}
	w.works("web")
	if work := w.want(w.set, "put right", "web Deployed web"); condition(work, native.ConditionDrifted) != "" {
		t.Error("it is drifted still")
	}

	// What is new is put there in Continuous, though somebody has changed what was there, and never in OneTime and DryRun.
	list(w.set, "web=next")
	w.set.Config.SyncMode = v1alpha1.SyncModeOneTime
	w.want(w.set, "another template with OneTime", "web Deployed web")
	w.set.Config.SyncMode = v1alpha1.SyncModeDryRun
	work := w.want(w.set, "another template with DryRun", "web Deployed web")
	if got := condition(work, native.ConditionPlanned); !strings.Contains(got, `spec.container.image: "web" -> "next"`) {
		t.Errorf("the condition Planned is %q", got)
	}
	scale()
	w.set.Config.SyncMode = v1alpha1.SyncModeContinuous
	w.want(w.set, "another template", "web Provisioning next")
	replicas(1)

	drop(w.set, "web")
	w.set.Config.SyncMode = v1alpha1.SyncModeDryRun
	w.works("web")
	work = w.want(w.set, "a removal with DryRun", "web Provisioning next")
	if got := condition(work, native.ConditionPlanned); !strings.HasPrefix(got, "True ChangesPlanned: ") || w.service("web") == nil {
		t.Errorf("the condition Planned is %q", got)
	}
}

func TestWhileTheProviderIsSuspendedTheMachineServicesStandStillToo(t *testing.T) {
	w := newWorld(t)
	w.templates(w.set, "web", "db", "next")
	list(w.set, "web=web")
	list(w.set, "db=db")
	w.settle(w.set)
	w.works("web", "db")
	w.want(w.set, "at first", "db Deployed db; web Deployed web")
	// Somebody has paused one already.
	w.change("db", func(s *machinesv1alpha1.MachineService) { s.Annotations[framework.PausedAnnotation] = "true" })
	suspend := func() *statemanager.Work {
		t.Helper()
		work, err := w.manager.Suspend(t.Context(), w.set)
		if err != nil {
			t.Fatal(err)
		}
		w.carryOut(w.set, work)
		return work
	}
	list(w.set, "web=next")
	if work := suspend(); changes(work) != 1 || states(work) != "db Deployed db; web Deployed web" {
		t.Errorf("the work is %+v", work)
	}
	if work := suspend(); changes(work) != 0 || !work.Left {
		t.Errorf("the work is %+v", work)
	}
	paused := func(name string) string { return w.service(name).Annotations[framework.PausedAnnotation] }
	if paused("web") != "true" || paused("db") != "true" || w.service("web").Spec.Container.Image != "web" {
		t.Errorf("web has %v", w.service("web").Annotations)
	}
	// Somebody makes one go on.
	w.change("web", func(s *machinesv1alpha1.MachineService) { delete(s.Annotations, framework.PausedAnnotation) })
	work := suspend()
	if fields := work.Operations[0].Changes[0].Fields; len(fields) != 1 || !strings.Contains(fields[0].String(), framework.PausedAnnotation) {
		t.Errorf("the fields of the plan are %v", fields)
	}
	w.want(w.set, "when it goes on", "db Deployed db; web Provisioning next")
	if paused("web") != "" || paused("db") != "true" {
		t.Errorf("web has %v, db %v", w.service("web").Annotations, w.service("db").Annotations)
	}
	suspend()
	w.set.ServiceSet.DeletionTimestamp = new(metav1.Now())
	w.want(w.set, "when it is deleted after", "")
}

// Its containers are looked after again, whatever is wrong with what is wanted; and what is wrong is planned too.
func TestWhenTheProviderGoesOnAlsoWhatIsWronglyWantedDoes(t *testing.T) {
	w := newWorld(t)
	w.templates(w.set, "web")
	for name, wrong := range map[string]struct{ template, values string }{
		"a template that is not there":        {template: "absent"},
		"a spec that the API server refuses":  {template: "web", values: "strategy: {steps: [{percent: 10}]}"},
		"values that make no spec of anybody": {template: "web", values: "container: 7"},
	} {
		list(w.set, "web=web")
		w.settle(w.set)
		suspended, err := w.manager.Suspend(t.Context(), w.set)
		if err != nil {
			t.Fatal(err)
		}
		w.carryOut(w.set, suspended)
		list(w.set, "web="+wrong.template).Values = wrong.values
		work := w.reconcile(w.set)
		told := slices.ContainsFunc(work.Operations, func(o statemanager.Operation) bool { return o.Err != nil })
		if annotations := w.service("web").Annotations; annotations[framework.PausedAnnotation] != "" || !told || changes(work) != 1 {
			t.Errorf("%s: it has the annotations %v, and the work was %+v", name, annotations, work.Operations)
		}
		if work := w.settle(w.set); work.Services[0].State != v1alpha1.ServiceStateFailed {
			t.Errorf("%s: %s", name, states(work))
		}
	}
}

// Its containers are looked after again, whatever it waits for; and the operator of MachineServices removes those of what is let go of.
func TestWhenTheProviderGoesOnAlsoWhatHasToWaitDoes(t *testing.T) {
	for name, wait := range map[string]func(w *world){
		"until what depends on it is gone": func(w *world) { drop(w.set, "web", "shop") },
		"until a conflict has ended": func(w *world) {
			w.create(&machinesv1alpha1.MachineService{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}})
			w.set.Config.StopOnConflict = true
			list(w.set, "foreign=web")
		},
		"for a machine that does not answer, and is let go of": func(w *world) {
			drop(w.set, "web", "shop")
			w.set.ServiceSet.Annotations = map[string]string{statemanager.LetGoAnnotation: "true"}
			service := w.service("web")
			service.Status.Machines = []machinesv1alpha1.MachineContainers{{Name: "one", State: api.MachineUnknown}}
			if err := errors.Join(w.user.Status().Update(t.Context(), service), w.user.Delete(t.Context(), service)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.templates(w.set, "web")
			list(w.set, "web=web")
			list(w.set, "shop=web", "web")
			w.settle(w.set)
			w.works("web")
			w.settle(w.set)
			for _, name := range []string{"shop", "web"} {
				w.change(name, func(s *machinesv1alpha1.MachineService) { s.Finalizers = []string{"example.com/holds"} })
			}
			suspended, err := w.manager.Suspend(t.Context(), w.set)
			if err != nil {
				t.Fatal(err)
			}
			w.carryOut(w.set, suspended)
			wait(w)
			w.settle(w.set)
			for _, name := range []string{"shop", "web"} {
				if annotations := w.service(name).Annotations; annotations[framework.PausedAnnotation] != "" {
					t.Errorf("%s has the annotations %v", name, annotations)
				}
				w.change(name, func(s *machinesv1alpha1.MachineService) { s.Finalizers = nil })
			}
		})
	}
}

// Without the labels nothing says the namespace of its service. It is the set's all the same, and goes with it.
func TestAMachineServiceThatHasLostItsLabelsIsNotForgotten(t *testing.T) {
	w := newWorld(t)
	w.templates(w.set, "web")
	list(w.set, "web=web")
	lose := func() {
		w.settle(w.set)
		w.works("web")
		w.change("web", func(s *machinesv1alpha1.MachineService) { s.Labels = nil })
	}
	lose()
	w.want(w.set, "without labels", "web Deployed web")
	if len(w.service("web").Labels) > 0 {
		t.Error("the labels are put right without drift detection")
	}
	w.set.Config.SyncMode = v1alpha1.SyncModeContinuousWithDriftDetection
	w.want(w.set, "with drift detection", "web Deployed web")
	if len(w.service("web").Labels) == 0 {
		t.Error("the labels are not put right")
	}
	for name, end := range map[string]func(){
		"taken from the set":          func() { drop(w.set, "web") },
		"unknown to the set's status": func() { drop(w.set, "web"); w.set.ServiceSet.Status.Services = nil },
		"deleted with the set":        func() { w.set.ServiceSet.DeletionTimestamp = new(metav1.Now()) },
	} {
		w.set = w.newSet("prod")
		w.templates(w.set, "web")
		list(w.set, "web=web")
		lose()
		end()
		w.want(w.set, name, "")
		if w.service("web") != nil {
			t.Errorf("%s: its MachineService is still there", name)
		}
	}
}
