package servicesets

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/internal/statuses"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

func key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: name}
}

func version(v string) v1alpha1.ServiceVersion {
	return v1alpha1.ServiceVersion{Template: "t-" + v, Version: v}
}

// decided is an operation of a cluster with these decisions.
func decided(decisions ...serviceset.Decision) serviceset.OwnerOperation {
	o := serviceset.OwnerOperation{Owner: serviceset.Owner{Kind: v1alpha1.ClusterDeploymentKind, Key: key("prod")}, Key: key("prod")}
	set := &v1alpha1.ServiceSet{}
	for _, d := range decisions {
		if d.Reason != v1alpha1.ReasonRemoving {
			o.Owner.Services = append(o.Owner.Services, v1alpha1.Service{Name: d.Service.Name, Disable: d.Reason == v1alpha1.ReasonDisabled})
		}
		if d.To.Template == "" {
			continue
		}
		entry := v1alpha1.ServiceWithValues{Name: d.Service.Name, Template: d.To.Template, Version: d.To.Version}
		if d.To != d.Desired && d.Desired.Template != "" {
			entry.UpgradingTo = &d.Desired
		}
		set.Spec.Services = append(set.Spec.Services, entry)
	}
	o.Operation = &serviceset.Operation{
		Operation: v1alpha1.ServiceSetOperationNone, ServiceSet: set, Before: set, Resolution: &serviceset.Resolution{Decisions: decisions},
	}
	return o
}

// failing is an operation of a cluster with one service that can't be resolved.
func failing(err error) serviceset.OwnerOperation {
	o := decided()
	o.Owner.Services = []v1alpha1.Service{{Name: "a", Template: "t-1"}}
	o.Err, o.Operation = err, nil
	return o
}

// told formats conditions.
func told(conditions []metav1.Condition) []string {
	var lines []string
	for _, c := range conditions {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s=%s %s %s", c.Type, c.Status, c.Reason, c.Message)))
	}
	return lines
}

func TestConditionsOfAnOwner(t *testing.T) {
	deployed := serviceset.Decision{Service: key("a"), Reason: v1alpha1.ReasonDeployed, To: version("1"), Desired: version("1")}
	flying := serviceset.Decision{Service: key("b"), Reason: v1alpha1.ReasonInFlight, To: version("1"), Desired: version("1")}
	stepping := serviceset.Decision{Service: key("b"), Reason: v1alpha1.ReasonStepping, From: version("1"), To: version("2"), Desired: version("4"), Steps: 3}
	failed := serviceset.Decision{Service: key("b"), Reason: v1alpha1.ReasonFailed, To: version("1"), Desired: version("1"), Message: "1 failed: no room"}
	waiting := serviceset.Decision{Service: key("c"), Reason: v1alpha1.ReasonWaiting, Desired: version("1"), WaitsFor: []client.ObjectKey{key("b")}}
	behind := serviceset.Decision{Service: key("d"), Reason: v1alpha1.ReasonWaiting, Desired: version("1"), WaitsFor: []client.ObjectKey{key("c")}}
	for name, test := range map[string]struct {
		operation serviceset.OwnerOperation
		want      []string
	}{
		"nothing": {decided(), []string{
			"Ready=True Deployed no services are desired", "Progressing=False Deployed", "Blocked=False NotBlocked",
		}},
		"all deployed": {decided(deployed), []string{
			"Ready=True Deployed the service is deployed", "Progressing=False Deployed", "Blocked=False NotBlocked",
		}},
		"one in flight, others wait": {decided(deployed, flying, waiting, behind), []string{
			"Ready=False InFlight b 1 is on its way; c waits for b; d waits for c",
			"Progressing=True InFlight b 1 is on its way; c waits for b; d waits for c", "Blocked=False NotBlocked",
		}},
		"a step": {decided(stepping), []string{
			"Ready=False Stepping b 2 is on its way, a step to 4", "Progressing=True Stepping b 2 is on its way, a step to 4", "Blocked=False NotBlocked",
		}},
		"what waits for a failure does not move": {decided(failed, waiting, behind), []string{
			"Ready=False Failed b: 1 failed: no room; c waits for b; d waits for c",
			"Progressing=False Failed c waits for b; d waits for c", "Blocked=True Failed b: 1 failed: no room",
		}},
		"blocked and moving": {decided(
			failed, serviceset.Decision{Service: key("e"), Reason: v1alpha1.ReasonInFlight, To: version("1"), Desired: version("1")},
		), []string{
			"Ready=False Failed b: 1 failed: no room; e 1 is on its way", "Progressing=True InFlight e 1 is on its way", "Blocked=True Failed b: 1 failed: no room",
		}},
		"disabled": {decided(deployed, serviceset.Decision{Service: key("e"), Reason: v1alpha1.ReasonDisabled}), []string{
			"Ready=True Deployed the service is deployed, and a disabled one is left as it is", "Progressing=False Deployed", "Blocked=False NotBlocked",
		}},
		"what waits for a disabled service that is not there does not move": {decided(
			serviceset.Decision{Service: key("b"), Reason: v1alpha1.ReasonDisabled}, waiting,
		), []string{"Ready=False WaitingForDependencies c waits for b", "Progressing=False WaitingForDependencies c waits for b", "Blocked=False NotBlocked"}},
		"removing": {decided(deployed, serviceset.Decision{Service: key("e"), Reason: v1alpha1.ReasonRemoving, From: version("1")}), []string{
			"Ready=True Deployed the service is deployed", "Progressing=True Removing e is being removed", "Blocked=False NotBlocked",
		}},
		"a cycle": {failing(&serviceset.GraphError{Cycles: []serviceset.Cycle{{
			Services: []client.ObjectKey{key("a")}, Path: []client.ObjectKey{key("a"), key("a")},
		}}}), blockedBy("DependencyCycle services depend on each other: default/a → default/a: take one of these dependencies out")},
		"a provider that does not exist": {
			failing(apierrors.NewNotFound(schema.GroupResource{Resource: "statemanagementproviders"}, "native")),
			blockedBy("ProviderMissing StateManagementProvider native does not exist: create it, or name another one in serviceSpec.provider"),
		},
		"a service that another owner has": {decided(
			deployed, serviceset.Decision{Service: key("e"), Reason: v1alpha1.ReasonOverridden, Message: "belongs to another"},
		), []string{
			"Ready=True Deployed the service is deployed, and one is overridden by another owner", "Progressing=False Deployed", "Blocked=False NotBlocked",
		}},
		"a handover that is stuck": {decided(
			deployed, serviceset.Decision{Service: key("e"), Reason: v1alpha1.ReasonHandoverStuck, From: version("1"), Message: "stays"},
		), []string{"Ready=False HandoverStuck e: stays", "Progressing=False HandoverStuck", "Blocked=True HandoverStuck e: stays"}},
		"anything else": {failing(errors.New("it is somebody else's")), blockedBy("Invalid it is somebody else's")},
	} {
		t.Run(name, func(t *testing.T) {
			v := newReports([]serviceset.OwnerOperation{test.operation})[0].verdict()
			if diff := cmp.Diff(test.want, told(v.Conditions(1))); diff != "" {
				t.Errorf("the conditions differ (-want +got):\n%s", diff)
			}
		})
	}
}

func blockedBy(fault string) []string {
	reason, _, _ := strings.Cut(fault, " ")
	return []string{"Ready=False " + fault, "Progressing=False " + reason, "Blocked=True " + fault}
}

func TestWhatWaitsForAServiceOfAnotherOwnerMovesWithIt(t *testing.T) {
	waiting := decided(
		serviceset.Decision{Service: key("b"), Reason: v1alpha1.ReasonOverridden, Message: "belongs to another"},
		serviceset.Decision{Service: key("c"), Reason: v1alpha1.ReasonWaiting, WaitsFor: []client.ObjectKey{key("b")}},
	)
	for reason, moves := range map[string]bool{v1alpha1.ReasonInFlight: true, v1alpha1.ReasonFailed: false} {
		other := decided(serviceset.Decision{Service: key("b"), Reason: reason, To: version("1"), Desired: version("1")})
		for _, operations := range [][]serviceset.OwnerOperation{{waiting, other}, {other, waiting}} {
			for _, r := range newReports(operations) {
				for _, s := range r.services {
					if s.key == key("c") && s.progressing != moves {
						t.Errorf("b is %s, and progressing of c is %v", reason, s.progressing)
					}
				}
			}
		}
	}
}

func TestMessagesAreBounded(t *testing.T) {
	var decisions []serviceset.Decision
	for i := range 500 {
		decisions = append(decisions, serviceset.Decision{
			Service: key(fmt.Sprintf("service-%03d", i)), Reason: v1alpha1.ReasonFailed, To: version("1"), Desired: version("1"), Message: "1 failed: no room",
		})
	}
	v := newReports([]serviceset.OwnerOperation{decided(decisions...)})[0].verdict()
	for _, c := range v.Conditions(1) {
		if len(c.Message) > statuses.MaxMessage {
			t.Errorf("%s has a message of %d bytes", c.Type, len(c.Message))
		}
	}
	if got := v.Conditions(1)[2].Message; !strings.HasPrefix(got, "service-000: 1 failed: no room; service-001") || !strings.HasSuffix(got, " more") {
		t.Errorf("the message is %q", got)
	}
	huge := statuses.Bounded([]string{strings.Repeat("ä", statuses.MaxMessage), "another"})
	if len(huge) > statuses.MaxMessage || !strings.HasSuffix(huge, "…; another") {
		t.Errorf("%d bytes, ending in %q", len(huge), huge[len(huge)-20:])
	}
}
