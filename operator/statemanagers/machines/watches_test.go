package machines_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/informer"
	operatormachines "github.com/operatorkit/operatorkit/operator/machines"
	machinesv1alpha1 "github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestASetHearsOfWhatIsNewsOnly(t *testing.T) {
	w := newWorld(t)
	w.templates(w.set, "web")
	list(w.set, "web=web")
	w.settle(w.set)
	watch := w.manager.Watches()[0]
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- watch.Source.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	message := func(obj any) string {
		ready := meta.FindStatusCondition(obj.(*machinesv1alpha1.MachineService).Status.Conditions, operatormachines.ConditionReady)
		if ready == nil {
			return "nothing"
		}
		return ready.Message
	}
	var mu sync.Mutex
	var heard []string
	watch.Source.Subscribe(func(e informer.Event) {
		mu.Lock()
		defer mu.Unlock()
		if service := e.Object.(*machinesv1alpha1.MachineService); service.Namespace == w.namespace {
			heard = append(heard, fmt.Sprintf("%s of %s", message(e.Object), watch.Map(t.Context(), e.Object)))
		}
	})
	is := func(want string) {
		t.Helper()
		operatortest.Eventually(t, "the source has "+want, func() error {
			obj, exists, err := watch.Source.Get(informer.Key{Namespace: w.namespace, Name: "web"})
			if err == nil && (!exists || message(obj) != want) {
				err = fmt.Errorf("it has %v", obj)
			}
			return err
		})
	}
	is("nothing")
	for _, text := range []string{"1 of 3", "2 of 3", "all work"} {
		service := w.service("web")
		status := metav1.ConditionFalse
		if text == "all work" {
			status = metav1.ConditionTrue
		}
		service.Status.ObservedGeneration = service.Generation
		meta.SetStatusCondition(&service.Status.Conditions, metav1.Condition{
			Type: operatormachines.ConditionReady, Status: status, Reason: "Deploying", Message: text, ObservedGeneration: service.Generation,
		})
		if err := w.user.Status().Update(t.Context(), service); err != nil {
			t.Fatal(err)
		}
		is(text)
	}
	of := fmt.Sprintf(" of [%s/prod]", w.namespace)
	operatortest.Eventually(t, "it is heard that all work", func() error {
		mu.Lock()
		defer mu.Unlock()
		if len(heard) == 0 || heard[len(heard)-1] != "all work"+of {
			return fmt.Errorf("heard: %q", heard)
		}
		return nil
	})
	mu.Lock()
	defer mu.Unlock()
	if slices.Contains(heard, "2 of 3"+of) || !slices.Contains(heard, "nothing"+of) {
		t.Errorf("heard: %q", heard)
	}
}
