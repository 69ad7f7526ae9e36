package machines_test

import (
	"errors"
	"testing"

	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestContainersAreMadeAnewByRequest(t *testing.T) {
	w := newWorld(t, 1)
	w.start()
	web := service("web", "app:1", 1)
	w.create(web)
	w.want(web, "Ready=True Deployed")
	before := web.Status.Machines[0].Containers[0].Name
	change(w, web, func(s *v1alpha1.MachineService) {
		s.Annotations = map[string]string{v1alpha1.RecreateAnnotation: "once"}
	})
	operatortest.Eventually(t, "there is another container alone", func() error {
		w.want(web, "Ready=True Deployed")
		if on := web.Status.Machines; len(on) != 1 || len(on[0].Containers) != 1 || on[0].Containers[0].Name == before {
			return errors.New("it is the one that was there")
		}
		return nil
	})
}
