package operatortest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

const (
	canvasVariable = "OPERATORTEST_TEST_CANVAS"
	paintLease     = 3 * time.Second
)

// paint is the program of an operator that paints a canvas again and again, for as long as it believes in its lease.
func paint(forEver bool) int {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return 2
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		return 2
	}
	canvas := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: os.Getenv(canvasVariable), Name: "canvas"}}
	for renewed := time.Now(); forEver || time.Since(renewed) < paintLease; time.Sleep(20 * time.Millisecond) {
		renewed = time.Now()
		stroke := []byte(`{"data":{"painter":"first"}}`)
		if !forEver && canvas.ResourceVersion != "" { // one that was on its way when the process was paused is refused
			stroke = fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q},"data":{"painter":"first"}}`, canvas.ResourceVersion)
		}
		if err := c.Patch(context.Background(), canvas, client.RawPatch("application/merge-patch+json", stroke)); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	return 1
}

func TestR17AReplicaThatGoesOnAfterAPauseIsCaughtAndOneThatEndsIsNot(t *testing.T) {
	for _, test := range []struct {
		helper string
		good   bool
	}{
		{"paint while the lease lasts", true},
		{"paint", false},
	} {
		t.Run(test.helper, func(t *testing.T) {
			t.Parallel()
			kube := operatortest.Start(t)
			user := operatortest.NewClient(t, kube.RESTConfig(), nil)
			canvas := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: kube.Namespace(t), Name: "canvas"}}
			if err := user.Create(t.Context(), canvas); err != nil {
				t.Fatal(err)
			}
			painted := func() error {
				if err := user.Get(t.Context(), client.ObjectKeyFromObject(canvas), canvas); err != nil {
					return err
				}
				if canvas.Data["painter"] != "first" {
					return errors.New("nobody has painted")
				}
				return nil
			}
			replica := operatortest.StartReplica(t, operatortest.ReplicaConfig{
				Path: os.Args[0], Env: []string{helperVariable + "=" + test.helper, canvasVariable + "=" + canvas.Namespace},
			})
			operatortest.Eventually(t, "the first one paints", painted)

			look := 2 * time.Second
			if test.good {
				look = time.Minute // it ends
			}
			paused := time.Now()
			pause := replica.PausedUntil("the second one has painted", func() error {
				if time.Since(paused) <= paintLease {
					return errors.New("the lease lasts still")
				}
				canvas.Data = map[string]string{"painter": "second"}
				return user.Update(t.Context(), canvas)
			}, look)

			if test.good && (!pause.Ended || len(pause.Changed) > 0 || len(pause.Late) > 1) {
				t.Errorf("a good one was caught: %+v\n%s", pause, replica.Log())
			}
			if !test.good && (pause.Ended || len(pause.Changed) == 0 || len(pause.Late) < len(pause.Changed) || painted() != nil) {
				t.Errorf("a bad one was not caught: %+v\n%s", pause, replica.Log())
			}
		})
	}
}

func TestFaultsOfAReplicaStandBetweenItAndTheAPIServer(t *testing.T) {
	t.Parallel()
	kube := operatortest.Start(t)
	replica := operatortest.StartReplica(t, operatortest.ReplicaConfig{
		Path: os.Args[0], Env: []string{helperVariable + "=paint", canvasVariable + "=" + kube.Namespace(t)},
	})
	replica.Faults().On(func(r operatortest.Request) bool { return r.Verb == "patch" }, operatortest.InternalError())
	operatortest.Eventually(t, "a request was answered by a fault", func() bool {
		for _, e := range replica.Requests() {
			if e.Verb == "patch" && e.Status == 500 && !e.Changed() {
				return true
			}
		}
		return false
	})
}
