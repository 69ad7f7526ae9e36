package commandtest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/command/commandtest"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// guestsThatComeBack is about an operator that has, beside the rights that it declares, rules of its author's.
func guestsThatComeBack(t *testing.T, config command.Config, verbs ...string) operatortest.Scenario {
	t.Helper()
	config.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: verbs}}
	guest := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "guest"}}
	greeted := func(ctx context.Context, user client.Client, namespace string) error {
		found := &corev1.ConfigMap{}
		err := errors.Join(user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "guest"}, found),
			user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "hello"}, &corev1.ConfigMap{}))
		if err == nil && found.Annotations["greeted"] == "" {
			err = errors.New("the guest is not greeted")
		}
		return err
	}
	s := commandtest.Scenario(t, config)
	s.Objects = []client.Object{&corev1.ConfigMap{}}
	s.Phases = []operatortest.Phase{
		{Name: "come", Do: operatortest.Create(guest), Until: greeted},
		{Name: "come back", Do: operatortest.Patch(guest, `{"metadata":{"annotations":{"greeted":null}}}`), Until: greeted},
		{Name: "leave", Do: operatortest.Delete(guest), Until: operatortest.Gone(guest)},
	}
	return s
}

func TestR19RightsThatAreExactlyNeededAreAccepted(t *testing.T) {
	t.Parallel()
	operatortest.Rights(t, guestsThatComeBack(t, greeter(false), "create", "patch"))
}

func TestR19RightsAreLookedAtWithTheControllersOfWorkloads(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: it takes a control plane of its own")
	}
	t.Parallel()
	kube := operatortest.Start(t, operatortest.WithConfig(operatortest.Config{Controllers: operatortest.WorkloadControllers()}))
	guests := guestsThatComeBack(t, greeter(false))
	on := func(verbs ...string) operatortest.Scenario {
		config := greeter(false)
		config.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: verbs}}
		s := commandtest.ScenarioOn(t, kube, config)
		s.Objects, s.Phases = guests.Objects, guests.Phases
		return s
	}
	operatortest.Rights(t, on("create", "patch"))
	r := &failing{TB: t}
	operatortest.Rights(r, on("create", "patch", "delete"))
	if want := "never used: delete configmaps of Role greeter"; r.errors != want {
		t.Errorf("want only %q, got: %s", want, r.errors)
	}
}

func TestR19ARuleThatNothingUsesIsNamed(t *testing.T) {
	t.Parallel()
	r := &failing{TB: t}
	operatortest.Rights(r, guestsThatComeBack(t, greeter(false), "create", "patch", "delete"))
	if want := "never used: delete configmaps of Role greeter"; r.errors != want {
		t.Errorf("want only %q, got: %s", want, r.errors)
	}
}

func TestR19ARightForAllNamespacesThatARoleIsEnoughForIsNamed(t *testing.T) {
	t.Parallel()
	r := &failing{TB: t}
	config := greeter(false)
	config.ClusterRules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}}}
	operatortest.Rights(r, guestsThatComeBack(t, config, "create", "patch"))
	if want := "never used: create configmaps of ClusterRole greeter"; r.errors != want {
		t.Errorf("want only %q, got: %s", want, r.errors)
	}
}

func TestR19ARequestThatIsRefusedIsNamed(t *testing.T) {
	t.Parallel()
	r := &failing{TB: t}
	s := guestsThatComeBack(t, greeter(false), "patch")
	until := s.Phases[0].Until
	s.Phases[0].Until = func(ctx context.Context, user client.Client, namespace string) error {
		events := &corev1.EventList{}
		if err := user.List(ctx, events, client.InNamespace(namespace)); err != nil {
			return err
		}
		for _, e := range events.Items {
			// What it takes is told where people look, too.
			if strings.Contains(e.Message, `with the rule {apiGroups: [""], resources: ["configmaps"], verbs: ["create"]}`) {
				return nil
			}
		}
		return fmt.Errorf("no event says what is lacking: %w", until(ctx, user, namespace))
	}
	s.Phases = s.Phases[:1]
	operatortest.Rights(r, s)
	if want := `refused: create configmaps in namespace `; !strings.Contains(r.errors, want) {
		t.Errorf("want %q in: %s", want, r.errors)
	}
}
