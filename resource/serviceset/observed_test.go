package serviceset_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// written carries out the operations of a scene as the API server does, and returns what was decided for the cluster's own services.
func (s *scene) written() string {
	s.t.Helper()
	said := ""
	for _, o := range s.compute() {
		if o.Err != nil {
			s.t.Fatal(o.Err)
		}
		if o.Owner.Kind == v1alpha1.ClusterDeploymentKind {
			said = saidWhy(o.Operation.Resolution.Decisions)
		}
		set := o.Operation.ServiceSet.DeepCopy()
		switch o.Operation.Operation {
		case create:
			set.Generation = 1
		case update:
			set.Generation++
			s.remove(o.Operation.Before)
			for _, other := range s.objects {
				if there, ok := other.(*v1alpha1.ServiceSet); ok && there.Name == set.Name {
					s.remove(there)
					break
				}
			}
		default:
			continue
		}
		s.add(set)
	}
	return said
}

// own returns the ServiceSet of the cluster.
func (s *scene) own() *v1alpha1.ServiceSet {
	for _, o := range s.objects {
		if set, ok := o.(*v1alpha1.ServiceSet); ok && set.Spec.MultiClusterService == "" {
			return set
		}
	}
	return nil
}

func TestNewValuesAreRolledOutBeforeWhatDependsOnThemIsTouched(t *testing.T) {
	s := newScene(t)
	cd := s.cluster("a: a-1.0.0 values=old\nb: b-1.0.0 after=a values=old\nc: c-1.0.0")
	s.written()
	manage := func(services ...string) {
		s.t.Helper()
		set := s.own()
		set.Status.ObservedGeneration, set.Status.Services = set.Generation, nil
		for _, name := range services {
			set.Status.Services = append(set.Status.Services, v1alpha1.ServiceState{Name: name, State: v1alpha1.ServiceStateDeployed})
		}
	}
	check := func(when, decisions, want string) {
		s.t.Helper()
		if diff := cmp.Diff(trimmed(want), decisions); diff != "" {
			s.t.Errorf("%s the decisions differ (-want +got):\n%s", when, diff)
		}
	}
	manage("a", "c")
	s.written()
	manage("a", "b", "c")
	check("at first", s.written(), "Deployed: a 1.0.0 is deployed\nDeployed: b 1.0.0 is deployed\nDeployed: c 1.0.0 is deployed")

	cd.Spec.ServiceSpec.Services = desired(t, "a: a-1.0.0 values=new\nb: b-1.0.0 after=a values=new\nc: c-1.0.0")
	s.written()
	if diff := cmp.Diff("a: a-1.0.0@1.0.0 values=new\nb: b-1.0.0@1.0.0 after=a values=old\nc: c-1.0.0@1.0.0\n", said(s.own().Spec.Services)); diff != "" {
		t.Errorf("the services differ (-want +got):\n%s", diff)
	}
	check("before the state manager has looked", s.written(),
		"InFlight: a 1.0.0 is on its way\nWaitingForDependencies: b waits for a\nDeployed: c 1.0.0 is deployed")

	manage("a", "b", "c")
	s.written()
	check("when a was rolled out", s.written(), "Deployed: a 1.0.0 is deployed\nInFlight: b 1.0.0 is on its way\nDeployed: c 1.0.0 is deployed")
	manage("a", "b", "c")
	check("at the end", s.written(), "Deployed: a 1.0.0 is deployed\nDeployed: b 1.0.0 is deployed\nDeployed: c 1.0.0 is deployed")

	// A set that was restored begins with generation 1 again.
	s.own().Generation, s.own().Status.ObservedGeneration = 1, 1
	check("restored", s.written(), "Deployed: a 1.0.0 is deployed\nDeployed: b 1.0.0 is deployed\nDeployed: c 1.0.0 is deployed")
}

func TestAnOperationSaysWhichEntriesTheStateManagerHasSeen(t *testing.T) {
	s := newScene(t)
	cd := s.cluster("a: a-1.0.0\nc: c-1.0.0")
	s.written()
	s.own().Status.ObservedGeneration = 1
	cd.Spec.ServiceSpec.Services[0].Values = "new"
	o := s.compute()[0].Operation
	var seen []bool
	for i := range o.ServiceSet.Spec.Services {
		seen = append(seen, o.Observed(&o.ServiceSet.Spec.Services[i]))
	}
	if diff := cmp.Diff([]bool{false, true}, seen); diff != "" {
		t.Errorf("what was seen differs (-want +got):\n%s", diff)
	}
}

func TestTheOperationOfOneOwnerIsTheOneThatItsClusterHasForIt(t *testing.T) {
	for name, scene := range map[string]func(s *scene){
		"services":                         func(s *scene) { s.cluster("a: a-1.0.0") },
		"no services":                      func(s *scene) { s.cluster("") },
		"a cluster that is being deleted":  func(s *scene) { deleting(s.cluster("a: a-1.0.0")) },
		"a cluster that has only services": func(s *scene) { s.cluster(""); s.set(nil, "a: a-1.0.0@1.0.0", "", "a: Deployed") },
		"and is being deleted": func(s *scene) {
			cd := s.cluster("a: a-1.0.0")
			s.set(nil, "a: a-1.0.0@1.0.0", "", "a: Deployed")
			deleting(cd)
		},
	} {
		for _, owner := range []string{"cluster", "selecting", "elsewhere", "leaving"} {
			t.Run(name+", "+owner, func(t *testing.T) {
				s := newScene(t)
				scene(s)
				var mcs *v1alpha1.MultiClusterService
				if owner != "cluster" {
					mcs = s.multi(owner, 50, "a: a-1.0.0\nb: b-1.0.0")
				}
				switch owner {
				case "elsewhere":
					mcs.Spec.ClusterSelector.MatchLabels["tier"] = "two"
				case "leaving":
					s.set(mcs, "b: b-1.0.0@1.0.0", "", "b: Deployed")
					deleting(mcs)
				}
				op, err := serviceset.ComputeOperation(t.Context(), s, serviceset.OperationRequisites{
					ObjectKey: serviceset.ObjectKey(systemNamespace, s.cd, mcs), CD: s.cd, MCS: mcs, SystemNamespace: systemNamespace,
				})
				if err != nil {
					t.Fatal(err)
				}
				want := &serviceset.Operation{Operation: none}
				for _, o := range s.compute() {
					if mcs == nil && o.Owner.Kind == v1alpha1.ClusterDeploymentKind || mcs != nil && o.Owner.Key.Name == mcs.Name {
						want = o.Operation
					}
				}
				if diff := cmp.Diff(want, op); diff != "" {
					t.Errorf("the operations differ (-cluster +owner):\n%s", diff)
				}
				if s.cd.DeletionTimestamp != nil || len(s.cd.Spec.ServiceSpec.Services) == 0 && mcs == nil || owner == "elsewhere" || owner == "leaving" {
					if op.Operation == create {
						t.Error("a set is created for somebody who wants none")
					}
				}
			})
		}
	}
}
