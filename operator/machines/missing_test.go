package machines_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestR11AServiceIsRemovedFromAMachineThatTheListOfMachinesLacks(t *testing.T) {
	w := newWorld(t, 1)
	stop := w.start()
	web := service("web", "app:1", 1)
	w.create(web)
	w.want(web, "Ready=True")
	stop()
	if err := w.user.Delete(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	w.lag = operatortest.NewLag()
	w.lag.Omit(func(r operatortest.Request) bool { return r.Resource == "machines" })
	w.start()
	operatortest.Eventually(t, "the operator says what keeps it from the removal", func() error {
		events := &corev1.EventList{}
		if err := w.user.List(t.Context(), events, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		var messages []string
		for _, e := range events.Items {
			if strings.Contains(e.Message, w.engines[0].Name()+" is there, and was not connected to yet") {
				return nil
			}
			messages = append(messages, e.Message)
		}
		return fmt.Errorf("the events are %q", messages)
	})
	w.wantContainers("web", "app:1 running")
	w.lag.Release()
	w.wantGone(web)
	w.wantContainers("web", "")
}
